//go:build unix

package cluster_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/fddhdb/fddhdb/db/cluster"
	"github.com/fddhdb/fddhdb/db/cluster/internal/apply"
	"github.com/fddhdb/fddhdb/db/cluster/internal/checker"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
	"github.com/fddhdb/fddhdb/db/shard"
)

// A grownSite is what there was before the cluster grew: the logs of the shards that have been split, which
// are gone, read before they were removed.
type grownSite struct{ logs [siteShards][]apply.Message }

// growFor is how long a growth may take from when everything is mended on.
const growFor = 2 * time.Minute

// grow has the cluster grow, calling again until it has, and returns how long writes may have waited: as a
// fault.
func (s *site) grow(ctx context.Context, c *cluster.Client,
	history *checker.History) (waits []checker.Fault) {
	was := &grownSite{}
	var read sync.Once
	began, tries := time.Now(), 0
	closed := time.Duration(0)
	for {
		tries++
		err := c.Grow(ctx, cluster.GrowOptions{Progress: func(stage string, done, of int64) {
			switch {
			case stage == cluster.GrowClose && closed == 0:
				closed = history.Now()
			case stage == cluster.GrowRemove && done == 0:
				read.Do(func() {
					s.t.Logf("%8.3f s: the parts of the shards take over, %.3f s after they were closed, in try %d", history.Now().Seconds(), (history.Now() - closed).Seconds(), tries)
					waits = append(waits, checker.Fault{What: "growth", Begin: closed, End: history.Now()})
					for i := range siteShards {
						for was.logs[i] == nil && ctx.Err() == nil {
							log, err := s.readLog(ctx, i, 1)
							if err == nil {
								was.logs[i] = log
							} else {
								pause(ctx, 200*time.Millisecond)
							}
						}
					}
				})
			}
		}})
		if err == nil {
			s.t.Logf("%8.3f s: the cluster has grown to %d shards in %.1f s and %d tries",
				history.Now().Seconds(), c.Shards(), time.Since(began).Seconds(), tries)
			s.grown = was
			return waits
		}
		s.t.Logf("%8.3f s: grow: %v", history.Now().Seconds(), err)
		select {
		case <-ctx.Done():
			s.t.Errorf("the cluster has not grown in %v: %v", time.Since(began), err)
			return waits
		case <-time.After(time.Second):
		}
	}
}

// shards returns how many shards the site has, and the number of the first.
func (s *site) shards() (n, first int) {
	if s.grown == nil {
		return siteShards, 0
	}
	return 2 * siteShards, siteShards
}

// story returns all messages of the shard with an index, since the cluster was made. If the cluster has
// grown, the messages before that are those of the shard that was split; a message without keys of this shard
// is a skip.
func (s *site) story(ctx context.Context, index int) ([]apply.Message, error) {
	n, first := s.shards()
	if s.grown == nil {
		return s.readLog(ctx, first+index, 1)
	}
	var all []apply.Message
	for _, m := range s.grown.logs[index%siteShards] {
		op, err := wire.DecodeOp(m.Data)
		if err == nil && op.Kind == wire.Write && shard.Of(op.Changes[0].Item.Key, n) != index {
			skip := &wire.Op{ID: op.ID, Kind: wire.Skip}
			if m.Data, err = skip.Encode(); err != nil {
				return nil, err
			}
		}
		all = append(all, m)
		if err == nil && op.Kind == wire.Close {
			rest, err := s.readLog(ctx, first+index, m.Seq+1)
			return append(all, rest...), err
		}
	}
	return nil, errors.New("a log that was not closed")
}
