package checker

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"time"
)

// A mark says that from a time on a session has seen a shard at least up to a message.
type mark struct {
	at  time.Duration
	seq uint64
	op  int // the operation that has seen it
}

// marks belong to one session and shard, in order of both time and sequence.
type marks []mark

// before returns the latest mark before a time.
func (m marks) before(at time.Duration) mark {
	k := sort.Search(len(m), func(k int) bool { return m[k].at >= at })
	if k == 0 {
		return mark{op: -1}
	}
	return m[k-1]
}

func (m *marks) add(at time.Duration, seq uint64, op int) {
	if n := len(*m); n == 0 || (*m)[n-1].seq < seq {
		*m = append(*m, mark{at, seq, op})
	}
}

// reads compares the reads of each session with the logs. It takes operations by their end, so that
// everything an operation must see is known at its turn: that ended before the operation began.
func (c *check) reads() {
	order := make([]int, 0, len(c.ops))
	for i := range c.ops {
		order = append(order, i)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(c.ops[a].End, c.ops[b].End) })
	sessions := map[int][]marks{}
	for _, i := range order {
		o := &c.ops[i]
		seen := sessions[o.Session]
		if seen == nil {
			seen = make([]marks, len(c.logs))
			sessions[o.Session] = seen
		}
		switch {
		case o.Kind.Writes():
			if c.seqs[i] > 0 && (o.Result == OK || o.Result == Refused) {
				seen[c.shardOf(o.Key)].add(o.End, c.seqs[i], i)
			}
			continue
		case o.Result != OK:
			continue
		}
		c.found.Reads++
		switch o.Kind {
		case Get:
			c.read(i, c.shardOf(o.Key), seen, map[string]string{o.Key: o.Read})
		case Search:
			for shard, t := range c.logs {
				items := map[string]string{}
				for key := range t.keys {
					items[key] = "" // unless it was found
				}
				for key, value := range o.Items {
					if c.shardOf(key) == shard {
						items[key] = value
					}
				}
				c.read(i, shard, seen, items)
			}
		case Count:
			c.count(i, seen)
		}
	}
}

// read checks that a shard had these values at one time, within the bounds of the operation.
func (c *check) read(i, shard int, seen []marks, items map[string]string) {
	o, t := &c.ops[i], c.logs[shard]
	least, most := seen[shard].before(o.Begin), t.written(o.End)
	if at := t.at(items, least.seq, most); len(at) > 0 {
		seen[shard].add(o.End, at[0].from, i)
		return
	}
	switch at := t.at(items, 0, math.MaxUint64); {
	case len(at) == 0:
		c.violated(Torn, "shard %d: %v", shard, o)
	case at[0].from > most:
		c.violated(Early, "shard %d: %v: it is so from message %d on, and the last that had begun is %d", shard, o, at[0].from, most)
	default:
		by := ""
		if least.op >= 0 {
			by = c.ops[least.op].String()
		}
		c.violated(Stale, "shard %d: %v: it is so behind messages %v, and the session has seen message %d by %s", shard, o, at, least.seq, by)
	}
}

// at returns the messages from lo to hi after which all these keys have these values.
func (t *timeline) at(items map[string]string, lo, hi uint64) []span {
	if lo > hi {
		return nil
	}
	all := []span{{lo, hi}}
	for key, value := range items {
		if all = intersect(all, t.when(key, value, lo, hi)); len(all) == 0 {
			return nil
		}
	}
	return all
}

// count checks a sum over all shards, loosely: each shard may contribute any count that it had within the
// bounds.
func (c *check) count(i int, seen []marks) {
	o := &c.ops[i]
	low, high := 0, 0
	for shard, t := range c.logs {
		from, to := seen[shard].before(o.Begin).seq, t.written(o.End)
		if from > to {
			from = to
		}
		some := t.counts[from : to+1]
		low += slices.Min(some)
		high += slices.Max(some)
	}
	if o.N < low || o.N > high {
		c.violated(Torn, "%v: the logs say %d to %d", o, low, high)
	}
}
