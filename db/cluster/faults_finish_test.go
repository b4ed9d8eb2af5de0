//go:build unix

package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster"
	"github.com/fddhdb/fddhdb/db/cluster/internal/apply"
	"github.com/fddhdb/fddhdb/db/cluster/internal/checker"
	"github.com/fddhdb/fddhdb/db/cluster/internal/journal"
	"github.com/fddhdb/fddhdb/db/cluster/internal/names"
	"github.com/fddhdb/fddhdb/db/cluster/internal/route"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
)

// settleFor is how long replicas may take until they are equal when everything is mended.
const settleFor = time.Minute

// finish waits until the site has settled, and checks everything.
func (s *site) finish(history *checker.History, faults []checker.Fault, sessions []*session) {
	t := s.t
	ctx, cancel := context.WithTimeout(context.Background(), 3*settleFor)
	defer cancel()
	settled := s.settle(ctx)
	var logs [][]apply.Message
	for shard := range siteShards {
		log, err := s.readLog(ctx, shard)
		if err != nil {
			t.Fatalf("log of shard %d: %v", shard, err)
		}
		logs = append(logs, log)
	}
	ops := history.Ops()
	found := checker.Check(ops, logs, shardOfKey)
	for i, v := range found.Violations {
		if i == 20 {
			t.Errorf("and %d more", len(found.Violations)-i)
			break
		}
		t.Error(v)
	}
	for i, o := range checker.Unexplained(ops, faults, elections) {
		if i == 10 {
			break
		}
		t.Errorf("no fault explains it: %v", o)
	}
	for _, one := range sessions {
		for i, text := range one.odd {
			if i == 5 {
				break
			}
			t.Errorf("an odd error: %s", text)
		}
	}
	if settled {
		s.compare(ctx, logs, found.Final)
	}
	s.report(ops, faults, found, sessions)
}

// settle waits until all replicas are where their logs end, all of them without trouble and with the same
// chain.
func (s *site) settle(ctx context.Context) bool {
	begin := time.Now()
	var why error
	for time.Since(begin) < settleFor {
		if why = s.settled(ctx); why == nil {
			s.t.Logf("all replicas are equal %.1f s after the last operation", time.Since(begin).Seconds())
			return true
		}
		pause(ctx, 200*time.Millisecond)
	}
	s.t.Errorf("the replicas are not equal after %v: %v", settleFor, why)
	return false
}

func (s *site) settled(ctx context.Context) error {
	all, err := cluster.Nodes(ctx, s.admin, "test", time.Second)
	if err != nil {
		return err
	}
	if len(all) < siteNodes {
		return fmt.Errorf("%d nodes answer", len(all))
	}
	for shard := range siteShards {
		log, err := s.journal(shard)
		if err != nil {
			return err
		}
		info, err := log.Info(ctx)
		if err != nil {
			return err
		}
		chains := map[uint64]string{}
		replicas := 0
		for _, n := range all {
			for _, r := range n.Shards {
				if r.Shard != shard {
					continue
				}
				replicas++
				chains[r.Chain] = n.Node
				if r.Applied != info.Last || r.Problem != "" {
					return fmt.Errorf("node %s: %+v, and the log ends with %d", n.Node, r, info.Last)
				}
			}
		}
		if len(chains) != 1 || replicas != siteReplicas {
			return fmt.Errorf("shard %d: %d replicas, chains %v", shard, replicas, chains)
		}
	}
	return nil
}

func (s *site) journal(shard int) (*journal.Journal, error) {
	js, err := jetstream.New(s.admin)
	if err != nil {
		return nil, err
	}
	return journal.New(js, "test", shard), nil
}

// readLog reads a log to its end.
func (s *site) readLog(ctx context.Context, shard int) (all []apply.Message, err error) {
	log, err := s.journal(shard)
	if err != nil {
		return nil, err
	}
	info, err := log.Info(ctx)
	if err != nil {
		return nil, err
	}
	end := errors.New("the end")
	err = log.Follow(ctx, 1, func(some []journal.Read) error {
		for _, m := range some {
			all = append(all, m.Message)
		}
		if all[len(all)-1].Seq >= info.Last {
			return end
		}
		return nil
	})
	if errors.Is(err, end) {
		err = nil
	}
	return all, err
}

// only is a route to one node.
type only string

func (n only) Nodes(int) []string { return []string{string(n)} }
func (n only) Refresh()           {}

// compare compares each replica with the others and with what its log leaves.
func (s *site) compare(ctx context.Context, logs [][]apply.Message, final []map[string]string) {
	all, err := cluster.Nodes(ctx, s.admin, "test", time.Second)
	if err != nil {
		s.t.Error(err)
		return
	}
	for _, n := range all {
		for _, r := range n.Shards {
			router, err := route.New(s.admin, names.Cluster("test"), only(n.Node), nil)
			if err != nil {
				s.t.Error(err)
				return
			}
			ask := func(q wire.Request) *wire.Answer {
				q.Shard, q.From, q.Wait, q.Collection = r.Shard, uint64(len(logs[r.Shard])), 5000, "codes"
				a, err := router.Ask(ctx, &q)
				if err != nil {
					s.t.Errorf("node %s, shard %d: %v", n.Node, r.Shard, err)
					return &wire.Answer{}
				}
				return a
			}
			items := map[string]string{}
			if found := ask(wire.Request{Verb: wire.Search,
				Query: wire.QueryOf(db.Query{Code: []byte{0, 0}, K: 1000,
					Include: db.IncludePayload})}).Result; found != nil {
				for _, h := range found.Hits {
					items[h.Key] = string(h.Item.Payload)
				}
			}
			if want := final[r.Shard]; !maps.Equal(items, want) {
				s.t.Errorf("node %s, shard %d: it has %v, and the log leaves %v", n.Node, r.Shard, items,
					want)
			}
			got := map[string]string{}
			for key := range final[r.Shard] {
				if it := ask(wire.Request{Verb: wire.Get, Key: key}).Item; it != nil {
					got[key] = string(it.Payload)
				}
			}
			if !reflect.DeepEqual(got, final[r.Shard]) {
				s.t.Errorf("node %s, shard %d: by key it has %v, and the log leaves %v", n.Node, r.Shard, got,
					final[r.Shard])
			}
			if count := ask(wire.Request{Verb: wire.Count}).N; count != len(final[r.Shard]) {
				s.t.Errorf("node %s, shard %d: it counts %d items, and the log leaves %d", n.Node, r.Shard,
					count, len(final[r.Shard]))
			}
		}
	}
	c, err := cluster.Connect(ctx, s.admin, "test", cluster.ClientOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	defer c.Close()
	for shard := range c.Shards() {
		found, err := c.Compare(ctx, shard)
		if err != nil || len(found.Differences) > 0 || len(found.Left) > 0 {
			s.t.Errorf("shard %d: %+v, %v", shard, found, err)
		}
	}
}
