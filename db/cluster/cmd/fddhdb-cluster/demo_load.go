package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster"
	"github.com/fddhdb/fddhdb/db/cluster/internal/natsproc"
	"github.com/fddhdb/fddhdb/db/shard"
)

const (
	demoK         = 10
	demoQueries   = 256
	demoSearchers = 2
	searchPause   = 2 * time.Millisecond
	writePause    = 10 * time.Millisecond
)

// A near is the key of an item and the distance between its code and a query.
type near struct {
	distance int
	key      string
}

func compareNear(a, b near) int {
	return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.key, b.key))
}

// A demoQuery is a code with its nearest imported items, in order: the first demoK, and all as near as the
// last.
type demoQuery struct {
	code  []byte
	first []near
}

// A written is an item that a writer has sent.
type written struct {
	key   string
	code  []byte
	sent  time.Time
	acked time.Time // zero: it has not been acknowledged
}

// A load writes and searches, and checks every answer against the times of the writes.
type load struct {
	coll    *cluster.Collection
	one     *db.Collection // a database in this process with the imported items
	queries []demoQuery
	log     *ledger

	mu      sync.Mutex
	written []*written // guarded by mu, with their fields
}

// demoItems returns items whose codes lie around some centres, so that queries have neighbours.
func demoItems(n int, r *rand.Rand) []*db.Item {
	centres := make([]uint64, max(1, n/100))
	for i := range centres {
		centres[i] = r.Uint64()
	}
	items := make([]*db.Item, n)
	for i := range items {
		code := centres[r.IntN(len(centres))]
		for range r.IntN(8) {
			code ^= 1 << r.IntN(64)
		}
		items[i] = &db.Item{Key: fmt.Sprintf("item-%07d", i),
			Code: binary.LittleEndian.AppendUint64(nil, code)}
	}
	return items
}

// changed returns a code with some bits flipped.
func changed(code []byte, flips int, r *rand.Rand) []byte {
	c := bytes.Clone(code)
	for range flips {
		c[r.IntN(len(c))] ^= 1 << r.IntN(8)
	}
	return c
}

// firstOf returns the first items of one database, including all as near as the last. A cluster orders these
// ties differently from one database, so it may return any of them.
func firstOf(ctx context.Context, one *db.Collection, code []byte) ([]near, error) {
	res, err := one.Search(ctx, db.Query{Code: code, K: demoK})
	if err != nil || len(res.Hits) == 0 {
		return nil, err
	}
	runs, err := one.SearchRadius(ctx, db.Query{Code: code}, res.Hits[len(res.Hits)-1].Distance)
	if err != nil {
		return nil, err
	}
	defer runs.Close()
	if res, err = runs.First(ctx, max(1, runs.Total())); err != nil {
		return nil, err
	}
	all := nearsOf(res)
	slices.SortFunc(all, compareNear)
	return all, nil
}

func nearsOf(r *db.Result) []near {
	all := make([]near, len(r.Hits))
	for i, h := range r.Hits {
		all[i] = near{h.Distance, h.Key}
	}
	return all
}

// prepare chooses the queries and asks the database for their answers.
func (l *load) prepare(ctx context.Context, items []*db.Item, r *rand.Rand) error {
	for range demoQueries {
		q := demoQuery{code: changed(items[r.IntN(len(items))].Code, 3, r)}
		var err error
		if q.first, err = firstOf(ctx, l.one, q.code); err != nil {
			return err
		}
		l.queries = append(l.queries, q)
	}
	return nil
}

// compare sends all queries to the cluster and counts the answers that differ from the database.
func (l *load) compare(ctx context.Context) (wrong int, err error) {
	for i := range l.queries {
		q := &l.queries[i]
		if q.first, err = firstOf(ctx, l.one, q.code); err != nil {
			return wrong, err
		}
		res, err := l.coll.Search(ctx, cluster.Query{Query: db.Query{Code: q.code, K: demoK}})
		if err != nil {
			return wrong, err
		}
		if why := nearest(nearsOf(&res.Result), q.first, nil); why != "" {
			l.log.note(why)
			wrong++
		}
	}
	return wrong, nil
}

// run searches and writes until the context ends.
func (l *load) run(ctx context.Context) {
	var all sync.WaitGroup
	for i := range demoSearchers {
		all.Go(func() { l.search(ctx, rand.New(rand.NewPCG(7, uint64(i)))) })
	}
	for s := range demoShards {
		all.Go(func() { l.write(ctx, s, rand.New(rand.NewPCG(8, uint64(s)))) })
	}
	all.Wait()
}

func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// search makes one query after the other.
func (l *load) search(ctx context.Context, r *rand.Rand) {
	for pause(ctx, searchPause) {
		q := &l.queries[r.IntN(len(l.queries))]
		begin := time.Now()
		res, err := l.coll.Search(context.Background(),
			cluster.Query{Query: db.Query{Code: q.code, K: demoK}})
		end := time.Now()
		if err != nil {
			l.log.failed(err)
			continue
		}
		l.log.searched(begin, end)
		if why := l.judge(q, nearsOf(&res.Result), begin, end); why != "" {
			l.log.wrong(why)
		}
	}
}

// judge returns the error in an answer, or "". The imported items, and those acknowledged before the search
// began, must count. Items sent before it ended may count.
func (l *load) judge(q *demoQuery, got []near, begin, end time.Time) string {
	must, may := slices.Clone(q.first), map[near]bool{}
	l.mu.Lock()
	for _, w := range l.written {
		n := near{distance(w.code, q.code), w.key}
		switch {
		case !w.acked.IsZero() && w.acked.Before(begin):
			must = append(must, n)
		case w.sent.Before(end):
			may[n] = true
		}
	}
	l.mu.Unlock()
	slices.SortFunc(must, compareNear)
	return nearest(got, must, may)
}

// nearest returns the error in an answer, or "". The answer must have the nearest demoK of all, which is in
// order, and may have others. It may have any of the items as far away as the last.
func nearest(got, all []near, may map[near]bool) string {
	if !slices.IsSortedFunc(got, func(a, b near) int { return cmp.Compare(a.distance, b.distance) }) {
		return fmt.Sprintf("an answer is out of order: %v", got)
	}
	sure := slices.DeleteFunc(slices.Clone(got), func(n near) bool { return may[n] })
	slices.SortFunc(sure, compareNear)
	if want := min(len(all), demoK-(len(got)-len(sure))); len(slices.Compact(slices.Clone(sure))) != want {
		return fmt.Sprintf("an answer has %d items, want %d: %v", len(sure), want, sure)
	}
	for i, n := range sure {
		_, there := slices.BinarySearchFunc(all, n, compareNear)
		if n.distance != all[i].distance || !there {
			return fmt.Sprintf("an answer has %v, want %v or what is as near: %v", n, all[i], sure)
		}
	}
	return ""
}

// distance is the Hamming distance of codes of 64 bits.
func distance(a, b []byte) int {
	return bits.OnesCount64(binary.LittleEndian.Uint64(a) ^ binary.LittleEndian.Uint64(b))
}

// write stores new items of a shard one after the other, each near to some query.
func (l *load) write(ctx context.Context, of int, r *rand.Rand) {
	for i := 0; pause(ctx, writePause); {
		key := ""
		for ; key == "" || shard.Of(key, demoShards) != of; i++ {
			key = fmt.Sprintf("new-%d-%06d", of, i)
		}
		w := &written{key: key, code: changed(l.queries[r.IntN(len(l.queries))].code, 1+r.IntN(12), r),
			sent: time.Now()}
		l.mu.Lock()
		l.written = append(l.written, w)
		l.mu.Unlock()
		_, err := l.coll.Put(context.Background(), &db.Item{Key: w.key, Code: w.code})
		end := time.Now()
		if err != nil {
			l.log.failed(err)
			continue
		}
		l.mu.Lock()
		w.acked = end
		l.mu.Unlock()
		l.log.wrote(of, w.sent, end)
	}
}

// audit reads every written item, and adds the ones it finds to the database. lost counts acknowledged items
// that are missing or different.
func (l *load) audit(ctx context.Context, d *db.DB) (acknowledged, lost int, err error) {
	b := d.NewBatch()
	var mu sync.Mutex
	var all sync.WaitGroup
	at := make(chan *written)
	for range 8 {
		all.Go(func() {
			for w := range at {
				it, gerr := l.coll.Get(ctx, w.key)
				there := gerr == nil && bytes.Equal(it.Code, w.code)
				mu.Lock()
				switch {
				case there:
					gerr = b.Put(l.one, &db.Item{Key: w.key, Code: w.code})
				case !w.acked.IsZero() && (gerr == nil || errors.Is(gerr, db.ErrNotFound)):
					lost++
				}
				if !w.acked.IsZero() {
					acknowledged++
				}
				if gerr != nil && !errors.Is(gerr, db.ErrNotFound) {
					err = errors.Join(err, gerr)
				}
				mu.Unlock()
			}
		})
	}
	for _, w := range l.written {
		at <- w
	}
	close(at)
	all.Wait()
	if err != nil {
		return acknowledged, lost, err
	}
	return acknowledged, lost, b.Commit(ctx)
}

// Size of the demonstration.
const (
	demoServers  = 3
	demoNodes    = 4
	demoShards   = 8
	demoReplicas = 2
	demoCluster  = "demo"
)

// A site has the servers and the nodes of the demonstration, each a process, in a temporary folder.
type site struct {
	dir     string
	servers *natsproc.Group
	nodes   []*nodeProcess
	nc      *nats.Conn
	client  *cluster.Client
}

// A nodeProcess is a node that runs as a process.
type nodeProcess struct {
	name string
	cmd  *exec.Cmd
	in   interface{ Close() error } // its standard input; the node ends when it is closed
	done chan struct{}              // closed when the process is gone
}

// buildSite starts everything and makes the cluster. After an error it leaves nothing running.
func buildSite(ctx context.Context) (s *site, err error) {
	s = &site{}
	defer func() {
		if err != nil {
			if tail := s.logTail(); tail != "" && ctx.Err() == nil {
				err = exit.Failedf("%w\n%s", err, tail)
			}
			s.close()
			s = nil
		}
	}()
	if s.dir, err = os.MkdirTemp("", "fddhdb-demo-"); err != nil {
		return s, err
	}
	if s.servers, err = natsproc.Start(ctx, natsproc.Config{Dir: filepath.Join(s.dir, "nats"),
		Servers: demoServers}); err != nil {
		return s, err
	}
	for i := range demoNodes {
		s.nodes = append(s.nodes, &nodeProcess{name: fmt.Sprintf("n%d", i+1)})
		if err := s.start(i); err != nil {
			return s, err
		}
	}
	if s.nc, err = cluster.ConnectNATS(strings.Join(s.servers.URLs(), ",")); err != nil {
		return s, err
	}
	var names []string
	for _, n := range s.nodes {
		names = append(names, n.name)
	}
	err = cluster.Create(ctx, s.nc, demoCluster, cluster.CreateOptions{Shards: demoShards,
		Replicas: demoReplicas, Nodes: names, Servers: demoServers, LogBytes: 256 << 20})
	if err != nil {
		return s, err
	}
	s.client, err = cluster.Connect(ctx, s.nc, demoCluster, cluster.ClientOptions{})
	return s, err
}

// start starts a stopped node.
func (s *site) start(i int) error {
	n := s.nodes[i]
	self, err := os.Executable()
	if err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(s.dir, n.name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close() // the process has its own
	n.cmd = exec.Command(self, "node", "--name", n.name, "--dir", filepath.Join(s.dir, n.name), "--cluster",
		demoCluster,
		"--servers", strings.Join(s.servers.URLs(), ","), "--until-stdin-ends",
		"--user=", "--tls-ca=", "--tls-cert=", "--tls-key=") // the environment's values are for other servers
	n.cmd.Stdout, n.cmd.Stderr = log, log
	natsproc.OwnGroup(n.cmd)
	if n.in, err = n.cmd.StdinPipe(); err != nil {
		return err
	}
	if err := n.cmd.Start(); err != nil {
		return fmt.Errorf("start node %s: %w", n.name, err)
	}
	n.done = make(chan struct{})
	go func(cmd *exec.Cmd, done chan struct{}) {
		_ = cmd.Wait() // it may have been killed
		close(done)
	}(n.cmd, n.done)
	return nil
}

// kill ends a node as a power failure would.
func (s *site) kill(i int) {
	n := s.nodes[i]
	_ = n.cmd.Process.Kill() // fails only if it is gone
	<-n.done
}

// settled waits until every replica has applied its whole log, and nothing is wrong.
func (s *site) settled(ctx context.Context) error {
	for {
		why := ""
		logs := s.client.Logs(ctx)
		nodes, err := s.client.Nodes(ctx)
		if err != nil {
			return err
		}
		replicas := 0
		for _, n := range nodes {
			for _, r := range n.Shards {
				replicas++
				for _, l := range logs {
					if l.Shard == r.Shard && (r.Problem != "" || r.Applied < l.Last) {
						why = fmt.Sprintf("node %s, shard %d: at %d of %d: %s", n.Node, r.Shard, r.Applied,
							l.Last, r.Problem)
					}
				}
			}
		}
		for _, l := range logs {
			if l.Err != nil {
				why = fmt.Sprintf("log of shard %d: %v", l.Shard, l.Err)
			}
		}
		if replicas < demoShards*demoReplicas && why == "" {
			why = fmt.Sprintf("%d of %d replicas are there", replicas, demoShards*demoReplicas)
		}
		if why == "" {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: the cluster has not settled: %s", context.Cause(ctx), why)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// leading returns the server that leads the log of a shard, or -1.
func (s *site) leading(ctx context.Context, shard int) int {
	return s.servers.Index(s.client.Logs(ctx)[shard].Leader)
}

// logTail returns the ends of the nodes' logs, for an error.
func (s *site) logTail() string {
	var b strings.Builder
	for _, n := range s.nodes {
		text, err := os.ReadFile(filepath.Join(s.dir, n.name+".log"))
		if err != nil || len(text) == 0 {
			continue
		}
		fmt.Fprintf(&b, "log of node %s ends with: %s\n", n.name,
			strings.TrimSpace(string(text[max(0, len(text)-500):])))
	}
	return b.String()
}

// close ends all processes and removes the folder.
func (s *site) close() {
	if s.client != nil {
		_ = s.client.Close() // the connection may be closed
	}
	for _, n := range s.nodes {
		if n.done == nil {
			continue
		}
		_ = n.in.Close()
		select {
		case <-n.done:
		case <-time.After(5 * time.Second):
			_ = n.cmd.Process.Kill()
			<-n.done
		}
	}
	if s.nc != nil {
		s.nc.Close()
	}
	if s.servers != nil {
		s.servers.Close()
	}
	if s.dir != "" {
		_ = os.RemoveAll(s.dir)
	}
}

// errWrong says that the demonstration has found a broken promise.
var errWrong = errors.New("the cluster has not kept what it promises")
