package checker

import (
	"cmp"
	"slices"
	"sort"
	"time"
)

// writes compares the result of each write with the model's outcome of its messages.
func (c *check) writes() {
	c.seqs = make([]uint64, len(c.ops))
	for i := range c.ops {
		o := &c.ops[i]
		if !o.Kind.Writes() {
			continue
		}
		var applied, refused []event
		for _, e := range c.logs[c.shardOf(o.Key)].events[o.Value] {
			if e.applied {
				applied = append(applied, e)
			} else {
				refused = append(refused, e)
			}
		}
		if len(applied) > 0 {
			c.seqs[i] = applied[0].seq
			c.found.Writes++
		} else if len(refused) > 0 {
			c.seqs[i] = refused[0].seq
		}
		if len(applied) > 1 {
			c.violated(Twice, "%v: by messages %d and %d", o, applied[0].seq, applied[1].seq)
		}
		result := o.Result
		if o.Later != 0 && o.Later != Unknown {
			result = o.Later
		}
		switch {
		case result == OK && len(applied) > 0, result == Refused && len(applied) == 0 && len(refused) > 0, result == Unknown:
		case o.Later != 0:
			c.violated(Told, "%v: messages that were applied: %v, that were not: %v", o, applied, refused)
		case result == OK && len(refused) > 0, result == Refused:
			c.violated(Refusal, "%v: messages that were applied: %v, that were not: %v", o, applied, refused)
		case result == OK:
			c.violated(Lost, "%v", o)
		case len(applied) > 0:
			c.violated(Happened, "%v: by message %d", o, applied[0].seq)
		}
	}
}

// An acknowledged is a write whose client was told that it is in the log.
type acknowledged struct {
	end time.Duration
	seq uint64 // the largest of this write and all that ended before
	op  int
}

// order checks that later writes stand later in the log. A write with an unknown result begins like any
// other, but never ends.
func (c *check) order() {
	byShard := make([][]acknowledged, len(c.logs))
	for i := range c.ops {
		if o := &c.ops[i]; o.Kind.Writes() && c.seqs[i] > 0 && (o.Result == OK || o.Result == Refused) {
			s := c.shardOf(o.Key)
			byShard[s] = append(byShard[s], acknowledged{o.End, c.seqs[i], i})
		}
	}
	for _, all := range byShard {
		slices.SortFunc(all, func(a, b acknowledged) int { return cmp.Compare(a.end, b.end) })
		for i := 1; i < len(all); i++ {
			if all[i].seq < all[i-1].seq {
				all[i].seq, all[i].op = all[i-1].seq, all[i-1].op
			}
		}
	}
	for i := range c.ops {
		o := &c.ops[i]
		if !o.Kind.Writes() || c.seqs[i] == 0 {
			continue
		}
		all := byShard[c.shardOf(o.Key)]
		before := func(at time.Duration) *acknowledged {
			k := sort.Search(len(all), func(k int) bool { return all[k].end >= at })
			if k == 0 {
				return &acknowledged{}
			}
			return &all[k-1]
		}
		if b := before(o.Begin); b.seq > c.seqs[i] {
			c.violated(Order, "%v is message %d, and %v is message %d", o, c.seqs[i], &c.ops[b.op], b.seq)
		}
		// The answer to a question for an outcome covers all messages in the log by then.
		if b := before(o.Asked); o.Later == Unknown && b.seq > c.seqs[i] {
			c.violated(Told, "%v: it is message %d, and before the question %v was message %d", o, c.seqs[i], &c.ops[b.op], b.seq)
		}
	}
}
