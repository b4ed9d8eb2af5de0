//go:build unix

package cluster_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster"
	"github.com/fddhdb/fddhdb/db/cluster/internal/checker"
	"github.com/fddhdb/fddhdb/db/cluster/internal/journal"
)

// settleFor is how long replicas may take until they are equal when everything is mended.
const settleFor = time.Minute

// finish waits until the site has settled, and checks everything.
func (s *site) finish(history *checker.History, faults []checker.Fault, sessions []*session) {
	t := s.t
	ctx, cancel := context.WithTimeout(context.Background(), 3*settleFor)
	defer cancel()
	settled := s.settle(ctx)
	if settled {
		last := &session{t: t, number: len(sessions), steady: true, client: s.connect("end"),
			history: history, late: sessions[0].late, held: map[string]*db.Item{}}
		last.codes = last.client.Collection("codes")
		last.search(ctx, rand.New(rand.NewPCG(1, 1)), checker.Final)
		if n, err := last.codes.Count(ctx, ""); err != nil || n != len(last.found) {
			t.Errorf("%d items are counted, %v, and a search finds %d", n, err, len(last.found))
		}
		s.compare(ctx, last.client)
	}
	ops := history.Ops()
	began := time.Now()
	found := checker.Check(ops, siteShards, shardOfKey, filepath.Join(s.dir, "order-"))
	t.Logf("an order of writes was looked for in %.1f s", time.Since(began).Seconds())
	for _, v := range found {
		t.Error(v)
	}
	if len(found) > 0 { // for who looks into it
		b, err := json.Marshal(ops)
		if err = cmp.Or(err, os.WriteFile(filepath.Join(s.dir, "history.json"), b, 0o666)); err != nil {
			t.Error(err)
		}
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
	s.report(ops, faults, sessions)
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

// compare compares the replicas of each shard.
func (s *site) compare(ctx context.Context, c *cluster.Client) {
	for shard := range c.Shards() {
		found, err := c.Compare(ctx, shard)
		if err != nil || len(found.Differences) > 0 || len(found.Left) > 0 {
			s.t.Errorf("shard %d: %+v, %v", shard, found, err)
		}
	}
}
