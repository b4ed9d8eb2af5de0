// Cluster shows that searches and writes go on while machines are lost: it starts three NATS servers and four
// nodes, each a process, makes a cluster of eight shards, and kills a node and then a server (-9) while one
// goroutine searches and eight write, one to each shard. At the end it reads what was acknowledged, and
// compares answers with what they have to be.
//
//	go run .
//	go run . -items 1000000
//
// The servers are the program nats-server of the PATH, or else the one of this module, which go build makes.
// A server that dies is missed by the logs that it led for 4 to 10 seconds: writes to their shards wait.
package main

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/bits"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster"
	"github.com/fddhdb/fddhdb/db/shard"
)

const (
	shards, replicas = 8, 2
	nodes, servers   = 4, 3
	k                = 10
	queries          = 100
)

func main() {
	items := flag.Int("items", 100_000, "items to import")
	node := flag.String("node", "", "be the node `NAME`; the arguments are its folder and the servers")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	run := func() error { return show(ctx, *items) }
	if *node != "" {
		run = func() error { return serve(*node, flag.Arg(0), flag.Arg(1)) }
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serve is a node, until its standard input ends.
func serve(name, dir, urls string) error {
	nc, err := cluster.ConnectNATS(urls)
	if err != nil {
		return err
	}
	defer nc.Close()
	n, err := cluster.Open(context.Background(), cluster.NodeOptions{Cluster: "main", Node: name, Dir: dir,
		Conn: nc, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	return n.Close()
}

// A site has the processes, in a temporary folder.
type site struct {
	dir, program string // program is nats-server
	urls         string
	running      map[string]*exec.Cmd // by name
	client       *cluster.Client
}

// start starts a process, and kill ends it as a power failure would.
func (s *site) start(name, program string, args ...string) error {
	cmd := exec.Command(program, args...)
	log, err := os.OpenFile(filepath.Join(s.dir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	defer log.Close() // the process has its own
	cmd.Stdout, cmd.Stderr = log, log
	if _, err := cmd.StdinPipe(); err != nil { // it stays open as long as this process runs
		return err
	}
	s.running[name] = cmd
	return cmd.Start()
}

func (s *site) kill(name string) {
	_ = s.running[name].Process.Kill()
	_ = s.running[name].Wait()
	delete(s.running, name)
}

func (s *site) close() {
	for name := range s.running {
		s.kill(name)
	}
	_ = os.RemoveAll(s.dir)
}

func (s *site) startServer(name string) error {
	return s.start(name, s.program, "-c", filepath.Join(s.dir, name+".conf"))
}

func (s *site) startNode(name string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return s.start(name, self, "-node", name, filepath.Join(s.dir, name), s.urls)
}

// build starts the processes and makes the cluster.
func (s *site) build(ctx context.Context) (nc *nats.Conn, err error) {
	if s.program, err = exec.LookPath("nats-server"); err != nil {
		s.program = filepath.Join(s.dir, "nats-server")
		if out, err := exec.CommandContext(ctx, "go", "build", "-o", s.program,
			"github.com/nats-io/nats-server/v2").CombinedOutput(); err != nil {
			return nil, fmt.Errorf("no nats-server on the PATH, and go build: %w: %s", err, out)
		}
	}
	var ports []string
	for range 2 * servers {
		free, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		ports = append(ports, free.Addr().String())
		if err := free.Close(); err != nil {
			return nil, err
		}
	}
	s.urls = "nats://" + strings.Join(ports[:servers], ",nats://")
	for i := range servers {
		conf := fmt.Sprintf(`server_name: nats%d
listen: %s
jetstream { store_dir: %q, sync_interval: always }
cluster { name: c, listen: %s, routes: ["nats://%s"] }
`, i, ports[i], filepath.Join(s.dir, fmt.Sprint("store", i)), ports[servers+i],
			strings.Join(ports[servers:], `", "nats://`))
		name := fmt.Sprint("nats", i)
		err := os.WriteFile(filepath.Join(s.dir, name+".conf"), []byte(conf), 0o666)
		if err == nil {
			err = s.startServer(name)
		}
		if err != nil {
			return nil, err
		}
	}
	// Servers take a moment to listen, and another to elect a leader.
	err = until(ctx, func() error {
		nc, err = cluster.ConnectNATS(s.urls)
		return err
	})
	if err != nil {
		return nil, err
	}
	var names []string
	for i := range nodes {
		names = append(names, fmt.Sprint("node", i))
		if err := s.startNode(names[i]); err != nil {
			return nc, err
		}
	}
	err = until(ctx, func() error {
		try, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		err := cluster.Create(try, nc, "main", cluster.CreateOptions{Shards: shards, Replicas: replicas,
			Nodes: names, Servers: servers, LogBytes: 256 << 20})
		if errors.Is(err, db.ErrExists) { // the answer to an earlier try was lost
			err = nil
		}
		return err
	})
	if err != nil {
		return nc, err
	}
	s.client, err = cluster.Connect(ctx, nc, "main", cluster.ClientOptions{})
	return nc, err
}

// until calls f until it succeeds, for a minute.
func until(ctx context.Context, f func() error) error {
	for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		err := f()
		if err == nil || ctx.Err() != nil || time.Now().After(end) {
			return err
		}
	}
}

// A load searches and writes all the time.
type load struct {
	coll  *cluster.Collection
	codes [][]byte // of the queries
	least [][]int  // of each query: the distances of the nearest imported items

	mu    sync.Mutex
	items []*db.Item // imported or acknowledged
	wrong []error
	last  [shards + 1]time.Time // when a write to the shard has ended; at the end, a search

	// since the last phase, and the longest time without a search, or a write to some shard
	searches, writes    int
	noSearch, noWriteTo time.Duration
}

// phase lets the load go on for a while, and tells of it.
func (l *load) phase(ctx context.Context, what string, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Printf("%-25s %4d searches, %.2f s without; %4d writes, %.2f s without on some shard\n", what,
		l.searches, l.noSearch.Seconds(), l.writes, l.noWriteTo.Seconds())
	l.searches, l.writes, l.noSearch, l.noWriteTo = 0, 0, 0, 0
}

// ended notes that a search, or a write of an item to a shard, has ended.
func (l *load) ended(of int, item *db.Item, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	gap := time.Since(l.last[of])
	switch l.last[of] = time.Now(); {
	case err != nil:
		l.wrong = append(l.wrong, err)
	case item == nil:
		l.searches, l.noSearch = l.searches+1, max(l.noSearch, gap)
	default:
		l.writes, l.noWriteTo = l.writes+1, max(l.noWriteTo, gap)
		l.items = append(l.items, item)
	}
}

// search searches until the context ends. Items that were written meanwhile can only be nearer than the
// imported ones.
func (l *load) search(ctx context.Context) {
	for i := 0; ctx.Err() == nil; i = (i + 1) % queries {
		got, err := l.found(context.Background(), i)
		if err == nil && (len(got) < k || !slices.IsSorted(got) || slices.ContainsFunc([]int{0, k / 2, k - 1},
			func(rank int) bool { return got[rank] > l.least[i][rank] })) {
			err = fmt.Errorf("query %d: distances %v, of imported items alone %v", i, got, l.least[i])
		}
		l.ended(shards, nil, err)
		time.Sleep(2 * time.Millisecond)
	}
}

// found returns the distances of the nearest items of a query.
func (l *load) found(ctx context.Context, query int) (all []int, err error) {
	res, err := l.coll.Search(ctx, cluster.Query{Query: db.Query{Code: l.codes[query], K: k}})
	if err == nil {
		for _, h := range res.Hits {
			all = append(all, h.Distance)
		}
	}
	return all, err
}

// nearest computes what found returns.
func (l *load) nearest(query int) (all []int) {
	code := binary.LittleEndian.Uint64(l.codes[query])
	for _, item := range l.items {
		all = append(all, bits.OnesCount64(code^binary.LittleEndian.Uint64(item.Code)))
	}
	slices.Sort(all)
	return all[:k]
}

// write stores new items of a shard until the context ends.
func (l *load) write(ctx context.Context, of int) {
	r := rand.New(rand.NewPCG(2, uint64(of)))
	for i := 0; ctx.Err() == nil; i++ {
		key := fmt.Sprint("new-", i)
		if shard.Of(key, shards) != of {
			continue
		}
		item := &db.Item{Key: key, Code: near(l.codes[r.IntN(queries)], r)}
		_, err := l.coll.Put(context.Background(), item)
		l.ended(of, item, err)
		time.Sleep(10 * time.Millisecond)
	}
}

// near returns a code with some bits changed.
func near(code []byte, r *rand.Rand) []byte {
	code = slices.Clone(code)
	for range r.IntN(8) {
		code[r.IntN(len(code))] ^= 1 << r.IntN(8)
	}
	return code
}

// fill imports items with codes of 64 bits around some centres.
func (l *load) fill(ctx context.Context, c *cluster.Client, n int) error {
	r := rand.New(rand.NewPCG(1, 1))
	var centres [][]byte
	for range max(queries, n/100) {
		centres = append(centres, binary.LittleEndian.AppendUint64(nil, r.Uint64()))
	}
	for i := range n {
		l.items = append(l.items, &db.Item{Key: fmt.Sprint("item-", i),
			Code: near(centres[i%len(centres)], r)})
	}
	d := c.Database(cluster.DatabaseOptions{})
	to, err := d.Collection(ctx, l.coll.Name())
	if err != nil {
		return err
	}
	b := d.NewBatch()
	for i, item := range l.items {
		if err = b.Put(to, item); err == nil && (b.Full() || i == len(l.items)-1) {
			err = b.Commit(ctx)
			b = d.NewBatch()
		}
		if err != nil {
			return err
		}
	}
	for i := range queries {
		l.codes = append(l.codes, near(centres[i], r))
		l.least = append(l.least, l.nearest(i))
	}
	return nil
}

// story kills and starts again, while the load goes on.
func (l *load) story(ctx context.Context, s *site) error {
	l.phase(ctx, "all is well", 5*time.Second)
	s.kill("node1")
	l.phase(ctx, "node1 is killed", 5*time.Second)
	if err := s.startNode("node1"); err != nil {
		return err
	}
	l.phase(ctx, "node1 is started again", 3*time.Second)
	leader := s.client.Logs(ctx)[0].Leader
	if s.running[leader] == nil {
		return fmt.Errorf("the log of shard 0 has no leader: %q", leader)
	}
	s.kill(leader)
	l.phase(ctx, leader+" is killed", 12*time.Second)
	if err := s.startServer(leader); err != nil {
		return err
	}
	l.phase(ctx, leader+" is started again", 5*time.Second)
	return ctx.Err()
}

func show(ctx context.Context, n int) error {
	if n < queries {
		return fmt.Errorf("-items %d: at least %d", n, queries)
	}
	dir, err := os.MkdirTemp("", "fddhdb-example-cluster-")
	if err != nil {
		return err
	}
	s := &site{dir: dir, running: map[string]*exec.Cmd{}}
	defer s.close()
	fmt.Printf("starting %d servers and %d nodes in %s\n", servers, nodes, dir)
	nc, err := s.build(ctx)
	if nc != nil {
		defer nc.Close()
	}
	if err != nil {
		return err
	}
	defer s.client.Close()
	l := &load{}
	if l.coll, err = s.client.CreateCollection(ctx, "items", db.Schema{Bits: 64}); err != nil {
		return err
	}
	begin := time.Now()
	if err := l.fill(ctx, s.client, n); err != nil {
		return err
	}
	fmt.Printf("%d items are there, after %.1f s\n", n, time.Since(begin).Seconds())
	for i := range l.last {
		l.last[i] = time.Now()
	}
	loading, stop := context.WithCancel(ctx)
	defer stop()
	var all sync.WaitGroup
	all.Go(func() { l.search(loading) })
	for of := range shards {
		all.Go(func() { l.write(loading, of) })
	}
	err = l.story(ctx, s)
	stop()
	all.Wait()
	if err != nil {
		return err
	}
	return l.check(ctx, n)
}

// check reads what was acknowledged behind the import, and compares the answers at the end.
func (l *load) check(ctx context.Context, imported int) error {
	lost := 0
	for _, item := range l.items[imported:] {
		it, err := l.coll.Get(ctx, item.Key)
		if errors.Is(err, db.ErrNotFound) || err == nil && !slices.Equal(it.Code, item.Code) {
			lost++
		} else if err != nil {
			return err
		}
	}
	for i := range queries {
		if got, err := l.found(ctx, i); err != nil || !slices.Equal(got, l.nearest(i)) {
			l.wrong = append(l.wrong, fmt.Errorf("query %d: distances %v, want %v: %w", i, got, l.nearest(i), err))
		}
	}
	fmt.Printf("of %d acknowledged writes %d are lost; %d errors or wrong answers\n", len(l.items)-imported,
		lost, len(l.wrong))
	if lost > 0 || len(l.wrong) > 0 {
		return fmt.Errorf("the cluster has not kept what it promises: %w", errors.Join(l.wrong...))
	}
	return nil
}
