package checker

import (
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
	t := &timeline{shard: shard, keys: map[string][]version{}, events: map[string][]event{}, counts: []int{0}, begins: []time.Duration{0}}
	state, seen := map[string]string{}, map[wire.ID]uint64{}
	for i, m := range log {
		begun := t.begins[i]
		if m.Seq != uint64(i+1) {
			t.odd = append(t.odd, sprintf("message %d of the log of shard %d has sequence %d", i+1, shard, m.Seq))
		}
		m.Seq = uint64(i + 1)
		if op, err := wire.DecodeOp(m.Data); err != nil {
			t.odd = append(t.odd, sprintf("message %d of the log of shard %d: %v", m.Seq, shard, err))
		} else if op.Kind == wire.Write {
			value := valueOf(op)
			if at, ok := begin(value); ok {
				begun = max(begun, at)
			} else {
				t.odd = append(t.odd, sprintf("message %d of the log of shard %d has value %q, which no client has written", m.Seq, shard, value))
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
