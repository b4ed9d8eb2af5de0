package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster"
)

func demoCommand(e *env) *cobra.Command {
	var items int
	cmd := &cobra.Command{
		Use:     "demo",
		Short:   "Show a cluster that goes on while a node and a server are killed",
		GroupID: groupCluster,
		Long: usage.Prose(`
			Demo needs no preparation, and leaves nothing behind. In a temporary folder it
			starts three NATS servers and four nodes, each a process of its own, makes a
			cluster of 8 shards on 2 nodes each, imports items with codes of 64 bits, and
			compares answers with those of one database in this process.

			Then 2 programs search and 8 write, one to each shard, while a node is killed
			(-9) and started again, and then a NATS server that leads logs. Every answer is
			checked: it has the nearest of what was acknowledged before the search began. At
			the end every acknowledged write is read.

			A server that dies is missed by the logs that it led for 4 to 10 seconds: writes to
			their shards wait, and then are done. Searches go on.

			Everything shares this machine, so that times are those of a crowded one. It takes
			about 45 seconds. The exit code is 1 if a write was lost or an answer wrong.`),
		Example: usage.Example(`
			fddhdb-cluster demo
			fddhdb-cluster demo --items 1000000 --json`),
		Args: arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if items < 1 || items > 10_000_000 {
				return exit.Usagef("--items %d: 1 to 10,000,000 are possible", items)
			}
			d := &demo{e: e, said: e.Stdout}
			if e.json {
				d.said = nil // stderr, because stdout is for the object
			}
			return d.run(cmd.Context(), items)
		},
	}
	cmd.Flags().IntVar(&items, "items", 100_000, "import `N` items")
	return cmd
}

// A demo is a running demonstration.
type demo struct {
	e     *env
	said  interface{ Flush() error } // nil: to stderr
	begin time.Time
	site  *site
	load  *load
}

// A demoJSON is the output of demo --json.
type demoJSON struct {
	Items        int       `json:"items"`
	ImportRate   float64   `json:"import_items_per_second"`
	Acknowledged int       `json:"acknowledged"` // writes during the phases
	Lost         int       `json:"lost"`         // acknowledged writes that cannot be read
	Searches     int       `json:"searches"`
	Wrong        int       `json:"wrong"`  // wrong answers
	Failed       int       `json:"failed"` // searches and writes that ended with an error
	Before       phaseJSON `json:"before"`
	NodeKilled   phaseJSON `json:"node_killed"`
	ServerKilled phaseJSON `json:"server_killed"`
	Errors       []string  `json:"errors,omitempty"`
	Seconds      float64   `json:"seconds"`
}

// sayf writes a line of the story.
func (d *demo) sayf(format string, args ...any) {
	text := fmt.Sprintf("%4.0fs  ", time.Since(d.begin).Seconds()) + fmt.Sprintf(format, args...) + "\n"
	if d.said == nil {
		_, _ = io.WriteString(d.e.Stderr, text)
		return
	}
	_, _ = d.e.Stdout.WriteString(text)
	_ = d.said.Flush() // the end reports a lost terminal
}

// Durations of the phases.
const (
	calm    = 6 * time.Second // before a kill
	without = 6 * time.Second // without a node
	after   = 3 * time.Second // without a server, once writes flow again
)

func (d *demo) run(ctx context.Context, n int) (err error) {
	d.begin = time.Now()
	defer func() {
		if ctx.Err() != nil {
			err = context.Canceled
		}
	}()
	d.sayf("starting %d NATS servers and %d nodes, each a process", demoServers, demoNodes)
	if d.site, err = buildSite(ctx); err != nil {
		return err
	}
	defer d.site.close()
	d.sayf("they run in %s; a cluster of %d shards, each on %d nodes", d.site.dir, demoShards, demoReplicas)
	out := demoJSON{Items: n}
	one, err := d.fill(ctx, n, &out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, one.Close()) }()

	loading, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		d.load.run(loading)
	}()
	defer func() { stop(); d.site.client.Close(); <-ended }()
	phases, err := d.story(ctx)
	if err != nil {
		return err
	}
	stop()
	<-ended

	d.sayf("reading every acknowledged write, and comparing answers again")
	if err := d.site.settled(ctx); err != nil {
		return err
	}
	if out.Acknowledged, out.Lost, err = d.load.audit(ctx, one); err != nil {
		return err
	}
	wrong, err := d.load.compare(ctx)
	if err != nil {
		return err
	}
	log := d.load.log
	out.Before, out.NodeKilled, out.ServerKilled = log.json(phases[0]), log.json(phases[1]),
		log.json(phases[2])
	out.Wrong += wrong + log.wrongs
	out.Failed, out.Errors = log.failures, slices.Concat(log.errors, log.whys)
	for _, p := range phases {
		out.Searches += len(p.searches)
	}
	out.Seconds = float64(time.Since(d.begin).Milliseconds()) / 1000
	return d.report(&out)
}

// fill creates the collection and imports the items, into the cluster and into a database of this process.
// Then it compares the answers of both.
func (d *demo) fill(ctx context.Context, n int, out *demoJSON) (one *db.DB, err error) {
	r := rand.New(rand.NewPCG(1, 2))
	schema := db.Schema{Bits: 64}
	coll, err := d.site.client.CreateCollection(ctx, "items", schema)
	if err != nil {
		return nil, err
	}
	items := demoItems(n, r)
	bar := d.e.Progress()
	defer bar.End()
	begin := time.Now()
	if _, err := coll.Import(ctx, each(items),
		cluster.ImportOptions{Progress: func(_ string, done,
			_ int64) {
			bar.Report("importing", done, int64(n))
		}}); err != nil {
		return nil, err
	}
	bar.End()
	took := time.Since(begin)
	out.ImportRate = float64(n) / took.Seconds()
	d.sayf("%s imported: %s a second", term.Plural(n, "item", "items"), term.Thousands(int(out.ImportRate)))
	if one, err = db.Open("one", &db.Options{FS: vfs.NewMem()}); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, one.Close())
		}
	}()
	d.load = &load{coll: coll, log: newLedger()}
	if d.load.one, err = one.CreateCollection(ctx, "items", schema); err != nil {
		return nil, err
	}
	b := one.NewBatch()
	for _, it := range items {
		b.Put(d.load.one, it)
	}
	if err := b.Commit(ctx); err != nil {
		return nil, err
	}
	if err := d.load.prepare(ctx, items, r); err != nil {
		return nil, err
	}
	wrong, err := d.load.compare(ctx)
	if err != nil {
		return nil, err
	}
	out.Wrong += wrong
	d.sayf("%d answers compared with those of one database in this process: %d differ", demoQueries, wrong)
	return one, nil
}

func each(items []*db.Item) iter.Seq2[*db.Item, error] {
	return func(yield func(*db.Item, error) bool) {
		for _, it := range items {
			if !yield(it, nil) {
				return
			}
		}
	}
}

// story kills a node, starts it again, and does the same with a server. It returns the measurements from
// before, without the node, and without the server.
func (d *demo) story(ctx context.Context) (phases [3]*phase, err error) {
	d.sayf("%d programs search and %d write; each answer is checked", demoSearchers, demoShards)
	phases[0] = d.load.log.begin()
	if err := d.watch(ctx, "all is well", calm, nil); err != nil {
		return phases, err
	}

	const node = 1
	name := d.site.nodes[node].name
	phases[1] = d.load.log.begin()
	d.site.kill(node)
	d.sayf("killed node %s (-9): the other nodes have its shards, too", name)
	if err := d.watch(ctx, "without node "+name, without, nil); err != nil {
		return phases, err
	}
	d.load.log.begin() // not reported
	if err := d.site.start(node); err != nil {
		return phases, err
	}
	d.sayf("started node %s again: it catches up with the logs", name)
	if err := d.until(ctx, "node "+name+" is back", d.site.settled); err != nil {
		return phases, err
	}
	d.sayf("node %s has caught up", name)

	server := d.site.leading(ctx, 0)
	if server < 0 {
		return phases, exit.Failedf("no server leads the log of shard 0")
	}
	led := []int{}
	for _, l := range d.site.client.Logs(ctx) {
		if d.site.servers.Index(l.Leader) == server {
			led = append(led, l.Shard)
		}
	}
	phases[2] = d.load.log.begin()
	killed := time.Now()
	if err := d.site.servers.Kill(server); err != nil {
		return phases, err
	}
	what := d.site.servers.Name(server)
	d.sayf("killed NATS %s (-9), which led the logs of %s: they choose another leader in 4 to 10 s", what,
		shards(led))
	if err := d.watch(ctx, "without "+what, 30*time.Second,
		func() bool { return d.load.log.flowing(killed) }); err != nil {
		return phases, err
	}
	if d.load.log.flowing(killed) {
		d.sayf("every shard takes writes again")
	}
	if err := d.watch(ctx, "without "+what, after, nil); err != nil {
		return phases, err
	}
	d.load.log.begin()
	if err := d.site.servers.Restart(server); err != nil {
		return phases, err
	}
	d.sayf("started %s again", what)
	return phases, d.until(ctx, what+" is back", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		return d.site.servers.WaitReady(ctx)
	})
}

// watch reports each second, for a time or until enough, which may be nil, is true.
func (d *demo) watch(ctx context.Context, what string, most time.Duration, enough func() bool) error {
	end := time.After(most)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	d.load.log.beat()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-end:
			return nil
		case <-look.C:
			if enough != nil && enough() {
				return nil
			}
		case <-tick.C:
			d.beat(what)
		}
	}
}

// until is watch while f runs. It returns the error of f.
func (d *demo) until(ctx context.Context, what string, f func(ctx context.Context) error) error {
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	var err error
	ended := false
	werr := d.watch(ctx, what, time.Minute, func() bool {
		select {
		case err = <-done:
			ended = true
		default:
		}
		return ended
	})
	if !ended && werr == nil {
		werr = exit.Failedf("%s: not within a minute", what)
	}
	return errors.Join(err, werr)
}

func (d *demo) beat(what string) {
	b := d.load.log.beat()
	waiting := ""
	if len(b.waiting) > 0 {
		waiting = "; writes to " + shards(b.waiting) + " wait"
	}
	d.sayf("%-18s %5d searches, p99 %7.1f ms   %5d writes, p99 %7.1f ms%s", what, b.searches, b.searchMS,
		b.writes, b.writMS, waiting)
}

// report prints the results.
func (d *demo) report(out *demoJSON) error {
	e := d.e
	if e.json {
		if err := e.PrintJSON(out); err != nil {
			return err
		}
	} else {
		e.Printf("\n")
		var rows [][]any
		for _, p := range []struct {
			name string
			phaseJSON
		}{{"before", out.Before}, {"node killed", out.NodeKilled}, {"server killed", out.ServerKilled}} {
			rows = append(rows, []any{
				p.name, term.CountCell(p.Searches), term.NumberCell(p.P50MS, 1), term.NumberCell(p.P99MS, 1),
				term.NumberCell(p.LongestMS/1000, 2),
				term.CountCell(p.Writes), term.NumberCell(p.WriteP50MS, 1), term.NumberCell(p.WriteP99MS, 1),
				term.NumberCell(p.WriteLongMS/1000, 2),
			})
		}
		e.PrintTable([]term.Column{
			term.Left("while"), term.Right("searches"), term.Right("p50 ms"), term.Right("p99 ms"),
			term.Right("gap s"),
			term.Right("writes"), term.Right("p50 ms"), term.Right("p99 ms"), term.Right("gap s"),
		}, rows)
		e.Printf("gap: the longest time in which no search ended, or no write to some shard\n\n")
		e.Printf("acknowledged  %s\nlost          %s\nwrong         %s\nfailed        %s\n",
			term.Plural(out.Acknowledged, "write", "writes"), term.Plural(out.Lost, "write", "writes"),
			term.Plural(out.Wrong, "answer", "answers")+fmt.Sprintf(" of %s", term.Thousands(out.Searches)),
			term.Plural(out.Failed, "request", "requests"))
		for _, text := range out.Errors {
			e.Printf("              %s\n", text)
		}
	}
	if out.Lost+out.Wrong > 0 {
		return exit.Failedf("%w: %d writes lost, %d answers wrong", errWrong, out.Lost, out.Wrong)
	}
	return nil
}

// A ledger notes the durations of searches and writes, and the errors, by phase. Its methods may be called
// from any goroutine.
type ledger struct {
	mu       sync.Mutex
	phase    *phase
	second   phase // since the last line
	failures int
	errors   []string // the first few
	wrongs   int
	whys     []string // the first few
	lastRead time.Time
	lastWrit []time.Time // by shard: when the last write ended
	lastSent []time.Time // by shard: when that write began
}

// A phase has the times of the searches and writes that ended in it.
type phase struct {
	searches, writes []time.Duration
	// the longest time without the end of a search, or of a write to one shard
	searchGap, writGap time.Duration
}

func newLedger() *ledger {
	return &ledger{phase: &phase{}, lastWrit: make([]time.Time, demoShards),
		lastSent: make([]time.Time, demoShards)}
}

func (l *ledger) begin() *phase {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.phase = &phase{}
	return l.phase
}

func (l *ledger) searched(begin, end time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range []*phase{l.phase, &l.second} {
		p.searches = append(p.searches, end.Sub(begin))
	}
	if !l.lastRead.IsZero() {
		l.phase.searchGap = max(l.phase.searchGap, end.Sub(l.lastRead))
	}
	l.lastRead = end
}

func (l *ledger) wrote(shard int, begin, end time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range []*phase{l.phase, &l.second} {
		p.writes = append(p.writes, end.Sub(begin))
	}
	if last := l.lastWrit[shard]; !last.IsZero() {
		l.phase.writGap = max(l.phase.writGap, end.Sub(last))
	}
	l.lastWrit[shard], l.lastSent[shard] = end, begin
}

// most bounds the errors and wrong answers that are shown.
const most = 5

func (l *ledger) failed(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failures++; l.failures <= most {
		l.errors = append(l.errors, message(err))
	}
}

// wrong counts a wrong answer; note only keeps the reason.
func (l *ledger) wrong(why string) {
	l.note(why)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wrongs++
}

func (l *ledger) note(why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.whys) < most {
		l.whys = append(l.whys, why)
	}
}

// flowing reports whether every shard has taken a write that was sent since a time.
func (l *ledger) flowing(since time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !slices.ContainsFunc(l.lastSent, func(t time.Time) bool { return t.Before(since) })
}

// A beat sums up the time since the last one.
type beat struct {
	searches, writes int
	searchMS, writMS float64 // p99
	waiting          []int   // shards that have taken no write for half a second
}

func (l *ledger) beat() beat {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := beat{searches: len(l.second.searches), writes: len(l.second.writes),
		searchMS: percentile(l.second.searches, .99), writMS: percentile(l.second.writes, .99)}
	for shard, t := range l.lastWrit {
		if !t.IsZero() && time.Since(t) > 500*time.Millisecond {
			b.waiting = append(b.waiting, shard)
		}
	}
	l.second = phase{}
	return b
}

// percentile returns the duration that the given part of all does not exceed, in milliseconds.
func percentile(all []time.Duration, part float64) float64 {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Clone(all)
	slices.Sort(sorted)
	return ms(sorted[min(len(sorted)-1, int(part*float64(len(sorted))))])
}

// ms returns a duration in milliseconds, with three decimals.
func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// A phaseJSON is a phase in demo --json. Fields without write in their names are about searches.
type phaseJSON struct {
	Searches    int     `json:"searches"`
	P50MS       float64 `json:"p50_ms"`
	P99MS       float64 `json:"p99_ms"`
	LongestMS   float64 `json:"longest_gap_ms"` // without the end of a search
	Writes      int     `json:"writes"`
	WriteP50MS  float64 `json:"write_p50_ms"`
	WriteP99MS  float64 `json:"write_p99_ms"`
	WriteLongMS float64 `json:"write_longest_gap_ms"` // of one shard, without the end of a write
}

func (l *ledger) json(p *phase) phaseJSON {
	l.mu.Lock()
	defer l.mu.Unlock()
	return phaseJSON{
		len(p.searches), percentile(p.searches, .5), percentile(p.searches, .99), ms(p.searchGap),
		len(p.writes), percentile(p.writes, .5), percentile(p.writes, .99), ms(p.writGap),
	}
}
