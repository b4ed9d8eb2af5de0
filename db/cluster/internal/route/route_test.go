package route_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/names"
	"github.com/fddhdb/fddhdb/db/cluster/internal/natsproc"
	"github.com/fddhdb/fddhdb/db/cluster/internal/route"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
)

func TestMain(m *testing.M) {
	natsproc.Main()
	os.Exit(m.Run())
}

const cluster = names.Cluster("test")

// places are where shards are.
type places struct {
	mu        sync.Mutex
	nodes     map[int][]string
	refreshed atomic.Int64
}

func (p *places) Nodes(shard int) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.nodes[shard]
}

func (p *places) Refresh() { p.refreshed.Add(1) }

// An answering says what a node answers; nil: nothing.
type answering func(q *wire.Request) *wire.Answer

// A node of a test.
type node struct {
	asked atomic.Int64 // messages
	how   atomic.Pointer[answering]
}

func newNode(how answering) *node {
	n := &node{}
	n.how.Store(&how)
	return n
}

func (n *node) set(how answering) { n.how.Store(&how) }

func (n *node) answer(q *wire.Request) *wire.Answer { return (*n.how.Load())(q) }

func (n *node) serve(t *testing.T, nc *nats.Conn, name string) {
	t.Helper()
	_, err := nc.Subscribe(cluster.Read(name), func(m *nats.Msg) {
		n.asked.Add(1)
		q, err := wire.DecodeRequest(m.Data)
		if err != nil {
			t.Error(err)
			return
		}
		var a *wire.Answer
		if q.Verb == wire.Several {
			a = &wire.Answer{}
			for _, one := range q.Each() {
				a.Answers = append(a.Answers, n.answer(one))
			}
		} else {
			a = n.answer(q)
		}
		if a == nil {
			return
		}
		b, err := a.Encode()
		if err != nil {
			t.Error(err)
		}
		_ = m.Respond(b)
	})
	if err == nil {
		err = nc.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func connect(t *testing.T) *nats.Conn {
	t.Helper()
	servers, err := natsproc.Start(t.Context(), natsproc.Config{Dir: t.TempDir(), Servers: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(servers.Close)
	nc, err := nats.Connect(servers.URL(0))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

func router(t *testing.T, nc *nats.Conn, p route.Places) *route.Router {
	t.Helper()
	r, err := route.New(nc, cluster, p, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func says(n int) func(*wire.Request) *wire.Answer {
	return func(*wire.Request) *wire.Answer { return &wire.Answer{N: n} }
}

func fails(err error) func(*wire.Request) *wire.Answer {
	return func(*wire.Request) *wire.Answer { return &wire.Answer{Fault: wire.FaultOf(err)} }
}

// A request goes to a replica that can answer, whatever the others do; what every replica would say is the
// answer.
func TestAsk(t *testing.T) {
	nc := connect(t)
	silent, behind, elsewhere := newNode(func(*wire.Request) *wire.Answer { return nil }),
		newNode(fails(wire.ErrBehind)), newNode(fails(wire.ErrNotHere))
	good, damaged, refuses := newNode(says(7)), newNode(fails(db.ErrCorrupt)), newNode(fails(db.ErrNotFound))
	for name, n := range map[string]*node{"silent": silent, "behind": behind, "elsewhere": elsewhere,
		"good": good, "damaged": damaged, "refuses": refuses} {
		n.serve(t, nc, name)
	}
	p := &places{nodes: map[int][]string{
		0: {"gone", "good"}, 1: {"behind", "good", "elsewhere"}, 2: {"silent", "good"},
		3: {"damaged", "good"}, 4: {"refuses"}, 5: {"gone", "behind"},
	}}
	r := router(t, nc, p)
	for shard := range 4 {
		for range 4 { // whichever is first
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			a, err := r.Ask(ctx, &wire.Request{Verb: wire.Count, Shard: shard})
			cancel()
			if err != nil || a.N != 7 {
				t.Errorf("shard %d: %+v, %v", shard, a, err)
			}
		}
	}
	if r.Figures.Hedges.Load() == 0 || r.Figures.Retries.Load() == 0 {
		t.Errorf("%d hedges, %d retries", r.Figures.Hedges.Load(), r.Figures.Retries.Load())
	}
	if _, err := r.Ask(t.Context(), &wire.Request{Shard: 4}); !errors.Is(err, db.ErrNotFound) {
		t.Error(err)
	}
	for _, shard := range []int{5, 6} {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		_, err := r.Ask(ctx, &wire.Request{Shard: shard})
		cancel()
		var none *route.ShardError
		if !errors.As(err, &none) || none.Shard != shard || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("shard %d: %v", shard, err)
		}
	}
	if p.refreshed.Load() == 0 {
		t.Error("nobody has looked where the shards are now")
	}
}

// Shards of one node are asked for in one message. What that does not answer another node does, shard by
// shard.
func TestAskAll(t *testing.T) {
	nc := connect(t)
	byShard := func(q *wire.Request) *wire.Answer { return &wire.Answer{N: 100 + q.Shard} }
	a, b := newNode(byShard), newNode(byShard)
	a.serve(t, nc, "a")
	b.serve(t, nc, "b")
	p := &places{nodes: map[int][]string{}}
	requests := make([]*wire.Request, 9)
	for shard := range requests {
		p.nodes[shard] = []string{[]string{"a", "b"}[shard%2], []string{"b", "a"}[shard%2]}
		if shard != 4 {
			requests[shard] = &wire.Request{Verb: wire.Count, Shard: shard}
		}
	}
	r := router(t, nc, p)
	check := func(what string, want func(shard int) string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		answers, errs := r.AskAll(ctx, requests)
		for shard := range requests {
			got := "nothing"
			switch {
			case errs[shard] != nil:
				got = "refused"
			case answers[shard] != nil:
				got = fmt.Sprint(answers[shard].N)
			}
			if got != want(shard) {
				t.Errorf("%s: shard %d: %s, %v, want %s", what, shard, got, errs[shard], want(shard))
			}
		}
	}
	all := func(shard int) string {
		if shard == 4 {
			return "nothing"
		}
		return fmt.Sprint(100 + shard)
	}
	check("both", all)
	if n := a.asked.Load() + b.asked.Load(); n != 1 {
		t.Errorf("%d messages for shards that each node has", n)
	}
	b.set(func(q *wire.Request) *wire.Answer {
		switch {
		case q.Shard == 2:
			return &wire.Answer{Fault: wire.FaultOf(wire.ErrNotHere)}
		case q.Shard == 3:
			return &wire.Answer{Fault: wire.FaultOf(db.ErrInvalid)}
		}
		return byShard(q)
	})
	a.set(func(q *wire.Request) *wire.Answer {
		if q.Shard == 3 {
			return &wire.Answer{Fault: wire.FaultOf(db.ErrInvalid)}
		}
		return byShard(q)
	})
	for range 2 { // whichever is first
		check("one that lacks a shard", func(shard int) string {
			if shard == 3 {
				return "refused"
			}
			return all(shard)
		})
	}
	a.set(byShard)
	time.Sleep(1100 * time.Millisecond) // until b, which has refused, is asked first again
	b.set(func(*wire.Request) *wire.Answer { time.Sleep(2 * time.Second); return nil })
	for range 2 {
		begin := time.Now()
		check("one that is stopped", all)
		t.Log("with a node that is stopped:", time.Since(begin))
	}
}

// slowly answers after a while, and goes on with the next message meanwhile.
func (n *node) slowly(t *testing.T, nc *nats.Conn, name string, after time.Duration) {
	t.Helper()
	_, err := nc.Subscribe(cluster.Read(name), func(m *nats.Msg) {
		turn := n.asked.Add(1)
		q, err := wire.DecodeRequest(m.Data)
		if err != nil {
			t.Error(err)
			return
		}
		a := &wire.Answer{N: int(turn)}
		for range q.Each() {
			a.Answers = append(a.Answers, &wire.Answer{N: int(turn)})
		}
		b, err := a.Encode()
		if err != nil {
			t.Error(err)
		}
		time.AfterFunc(after, func() { _ = m.Respond(b) })
	})
	if err == nil {
		err = nc.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// An answer counts however late it is, also when others have been asked since, or the same node again.
func TestLateAnswers(t *testing.T) {
	nc := connect(t)
	late, later := newNode(nil), newNode(nil)
	late.slowly(t, nc, "late", 400*time.Millisecond)
	later.slowly(t, nc, "later", 1500*time.Millisecond)
	newNode(func(*wire.Request) *wire.Answer { return nil }).serve(t, nc, "silent")
	r := router(t, nc, &places{nodes: map[int][]string{0: {"late", "silent"}, 1: {"late", "silent"},
		2: {"later"}}})
	for _, test := range []struct {
		shards []int
		within time.Duration
	}{{[]int{0, 1}, 2 * time.Second}, {[]int{0, 1}, 2 * time.Second}, {[]int{2}, 5 * time.Second}} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		var requests []*wire.Request
		for _, shard := range test.shards {
			requests = append(requests, &wire.Request{Verb: wire.Count, Shard: shard})
		}
		begin := time.Now()
		answers, errs := r.AskAll(ctx, requests)
		cancel()
		if took := time.Since(begin); errors.Join(errs...) != nil || took > test.within {
			t.Errorf("shards %v: %v, after %v", test.shards, errors.Join(errs...), took)
		}
		if test.shards[0] == 2 && (answers[0].N != 1 || later.asked.Load() != 2) {
			t.Errorf("answer %d of %d counted, want the first of two", answers[0].N, later.asked.Load())
		}
	}
}

// Who waits when the router is closed waits no longer.
func TestCloseEndsRequests(t *testing.T) {
	nc := connect(t)
	newNode(func(*wire.Request) *wire.Answer { return nil }).serve(t, nc, "silent")
	r, err := route.New(nc, cluster, &places{nodes: map[int][]string{0: {"silent"}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(50*time.Millisecond, r.Close)
	if _, err := r.Ask(t.Context(), &wire.Request{Verb: wire.Count}); !errors.Is(err, db.ErrClosed) {
		t.Error(err)
	}
}
