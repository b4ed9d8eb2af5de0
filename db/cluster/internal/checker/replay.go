package checker

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/fddhdb/fddhdb/db/cluster/internal/apply"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
)

// A version is a value of a key from a message until the next version. Empty: the key has no value.
type version struct {
	from  uint64
	value string
}

// An event is a message with the value of a write, and its outcome by the model.
type event struct {
	seq     uint64
	applied bool
	refused bool // its condition does not hold
}

// A timeline is the replayed log of a shard.
type timeline struct {
	shard  int
	keys   map[string][]version // of each key, in order
	events map[string][]event   // by the value of the write; only the first message of each ID
	counts []int                // items after each message; [0] is 0, before the first
	begins []time.Duration      // the latest begin of all writes up to each message
	odd    []string             // entries that do not belong in the log
}

// replay replays a log. begin returns when the write with a value began.
func replay(shard int, log []apply.Message, begin func(value string) (time.Duration, bool)) *timeline {
	t := &timeline{shard: shard, keys: map[string][]version{}, events: map[string][]event{}, counts: []int{0},
		begins: []time.Duration{0}}
	state, seen := map[string]string{}, map[wire.ID]uint64{}
	for i, m := range log {
		begun := t.begins[i]
		if m.Seq != uint64(i+1) {
			t.odd = append(t.odd, sprintf("message %d of the log of shard %d has sequence %d", i+1, shard,
				m.Seq))
		}
		m.Seq = uint64(i + 1)
		if op, err := wire.DecodeOp(m.Data); err != nil {
			t.odd = append(t.odd, sprintf("message %d of the log of shard %d: %v", m.Seq, shard, err))
		} else if op.Kind == wire.Write {
			value := valueOf(op)
			if at, ok := begin(value); ok {
				begun = max(begun, at)
			} else {
				t.odd = append(t.odd, sprintf(
					"message %d of the log of shard %d has value %q, which no client has written", m.Seq,
					shard, value))
			}
			first, again := seen[op.ID]
			again = again && first+wire.Memory > m.Seq
			if expired := op.Base+wire.Memory <= m.Seq; !again && !expired {
				seen[op.ID] = m.Seq
				t.apply(m.Seq, value, op, state)
			}
		}
		t.counts = append(t.counts, len(state))
		t.begins = append(t.begins, begun)
	}
	return t
}

// valueOf returns the value of a write: the payload that it puts.
func valueOf(op *wire.Op) string {
	for _, c := range op.Changes {
		if c.Kind == wire.Put {
			return string(c.Item.Payload)
		}
	}
	return ""
}

func (t *timeline) apply(seq uint64, value string, op *wire.Op, state map[string]string) {
	for _, c := range op.Changes {
		if c.Kind != wire.Expect {
			continue
		}
		is, has := state[c.Item.Key]
		if has != (c.Old != nil) || has && is != string(c.Old.Payload) {
			t.events[value] = append(t.events[value], event{seq: seq, refused: true})
			return
		}
	}
	for _, c := range op.Changes {
		switch key := c.Item.Key; c.Kind {
		case wire.Put:
			state[key] = string(c.Item.Payload)
			t.keys[key] = append(t.keys[key], version{seq, state[key]})
		case wire.Delete:
			delete(state, key)
			t.keys[key] = append(t.keys[key], version{seq, ""})
		}
	}
	t.events[value] = append(t.events[value], event{seq: seq, applied: true})
}

// final returns the values by key at the end of the log.
func (t *timeline) final() map[string]string {
	all := map[string]string{}
	for key, versions := range t.keys {
		if v := versions[len(versions)-1].value; v != "" {
			all[key] = v
		}
	}
	return all
}

// A span is a range of sequences of the log, both ends included.
type span struct{ from, to uint64 }

// when returns the messages from lo to hi after which a key has a value.
func (t *timeline) when(key, value string, lo, hi uint64) (spans []span) {
	versions := t.keys[key]
	i := sort.Search(len(versions), func(i int) bool { return versions[i].from > lo })
	for i--; ; i++ { // -1: before the first version there is no value
		s := span{lo, hi}
		is := ""
		if i >= 0 {
			s.from, is = max(lo, versions[i].from), versions[i].value
		}
		if i+1 < len(versions) {
			s.to = min(hi, versions[i+1].from-1)
		}
		if s.from > hi {
			return spans
		}
		if is == value && s.from <= s.to {
			spans = append(spans, s)
		}
		if i+1 >= len(versions) {
			return spans
		}
	}
}

// intersect returns the sequences in both.
func intersect(a, b []span) (both []span) {
	for len(a) > 0 && len(b) > 0 {
		if s := (span{max(a[0].from, b[0].from), min(a[0].to, b[0].to)}); s.from <= s.to {
			both = append(both, s)
		}
		if a[0].to < b[0].to {
			a = a[1:]
		} else {
			b = b[1:]
		}
	}
	return both
}

// written returns the last message that may have been in the log at a time: all writes up to it had begun.
func (t *timeline) written(at time.Duration) uint64 {
	i, _ := slices.BinarySearchFunc(t.begins, at, func(begin, at time.Duration) int {
		if begin <= at {
			return -1
		}
		return 1
	})
	return uint64(i - 1)
}

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
		c.violated(Early, "shard %d: %v: it is so from message %d on, and the last that had begun is %d",
			shard, o, at[0].from, most)
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
		case result == OK && len(applied) > 0, result == Refused && len(applied) == 0 && len(refused) > 0,
			result == Unknown:
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
			c.violated(Told, "%v: it is message %d, and before the question %v was message %d", o, c.seqs[i],
				&c.ops[b.op], b.seq)
		}
	}
}
