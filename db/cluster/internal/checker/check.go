package checker

import (
	"fmt"
	"hash/maphash"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// A Violation is what no order of writes explains, with the evidence.
type Violation string

// Check looks for violations in a history, of which nothing is known but what clients saw. shardOf returns
// the shard of a key. For each shard porcupine searches for an order of all writes that explains every
// answer; it gives up after a time. visual, unless "", is the path of a page for each shard without such an
// order, without the number of the shard and ".html".
func Check(ops []Op, shards int, shardOf func(key string) int, within time.Duration,
	visual string) (found []Violation) {
	failed := map[string]*Op{}         // by value
	seen := map[string]time.Duration{} // by value: when somebody had it first
	for i := range ops {
		o := &ops[i]
		see := func(value string) {
			if at, has := seen[value]; !has || o.End < at {
				seen[value] = o.End
			}
		}
		switch {
		case o.Kind.Writes() && o.Result == Failed:
			failed[o.Value] = o
		case o.Kind == PutIf && o.Result == OK:
			see(o.Old)
		case o.Result == OK:
			see(o.Read)
			for _, value := range o.Items {
				see(value)
			}
		}
	}
	doubtful := map[string]bool{} // keys with a write of which nobody knows whether it has happened
	histories := make([][]porcupine.Operation, shards)
	add := func(shard int, o *Op, in any, end time.Duration) {
		histories[shard] = append(histories[shard], porcupine.Operation{ClientId: o.Session, Input: in,
			Output: o, Call: int64(o.Begin), Return: int64(end)})
	}
	for i := range ops {
		o := &ops[i]
		switch {
		case o.Kind.Writes():
			switch w := write(o); {
			case o.Result == Unknown && (o.Later == 0 || o.Later == Unknown):
				end, has := seen[o.Value]
				if !has && o.Kind != Delete { // nobody has seen it, so it matters to conditions alone
					doubtful[o.Key] = true
					continue
				}
				if !has {
					end = math.MaxInt64
				}
				add(shardOf(o.Key), o, w, end)
			case o.Result != Failed:
				add(shardOf(o.Key), o, w, o.End)
				if o.Result == OK {
					h := &histories[shardOf(o.Key)]
					*h = append(*h, porcupine.Operation{ClientId: o.Session, Input: acknowledged{}, Output: o,
						Call: int64(o.End), Return: int64(o.End)})
				}
			}
		case o.Result != OK:
		case o.Kind == Get:
			if w := failed[o.Read]; w != nil {
				found = append(found, Violation(fmt.Sprintf("%v shows a write that has failed for certain: %v", o, w)))
			}
			add(shardOf(o.Key), o, map[string]string{o.Key: o.Read}, o.End)
		case o.Kind == Search || o.Kind == Final:
			all := make([]everything, shards)
			for s := range all {
				all[s] = everything{}
			}
			for key, value := range o.Items {
				if w := failed[value]; w != nil {
					found = append(found, Violation(fmt.Sprintf("%v shows a write that has failed for certain: %v", o, w)))
				}
				all[shardOf(key)][key] = value
			}
			for s, items := range all {
				add(s, o, items, o.End)
			}
		}
	}
	model := modelOf(doubtful)
	for shard, h := range histories {
		// Mostly writes that nobody has seen have not happened. The search is long if it may place them
		// anywhere.
		likely := slices.DeleteFunc(slices.Clone(h),
			func(o porcupine.Operation) bool { return o.Return == math.MaxInt64 })
		if porcupine.CheckOperationsTimeout(model, likely, within) == porcupine.Ok {
			continue
		}
		result, info := porcupine.CheckOperationsVerbose(model, h, within)
		if result == porcupine.Ok {
			continue
		}
		text := fmt.Sprintf("shard %d: no order of writes explains %d operations", shard, len(h))
		if result == porcupine.Unknown {
			text = fmt.Sprintf("shard %d: in %v no order of writes was found that explains %d operations", shard,
				within, len(h))
		}
		for _, o := range unexplained(h, info) {
			text += fmt.Sprintf("\n\t%v", o)
		}
		if path := fmt.Sprintf("%s%d.html", visual, shard); visual != "" {
			if err := porcupine.VisualizePath(model, info, path); err == nil {
				text += "\n\tsee " + path
			}
		}
		found = append(found, Violation(text))
	}
	return found
}

// unexplained returns the first operations that the longest order found leaves out.
func unexplained(h []porcupine.Operation, info porcupine.LinearizationInfo) (some []*Op) {
	longest := map[int]bool{}
	for _, part := range info.PartialLinearizations() {
		for _, order := range part {
			if len(order) > len(longest) {
				longest = map[int]bool{}
				for _, i := range order {
					longest[i] = true
				}
			}
		}
	}
	for i, o := range h {
		if !longest[i] && o.Return != math.MaxInt64 {
			some = append(some, o.Output.(*Op))
		}
	}
	slices.SortStableFunc(some, func(a, b *Op) int { return int(a.End - b.End) })
	return some[:min(len(some), 5)]
}

// A writing is a write to a shard.
type writing struct {
	op      *Op
	changes map[string]string // values by key; empty: none
}

func write(o *Op) writing {
	if o.Kind == Delete {
		return writing{o, map[string]string{o.Key: "", o.Tag: o.Value}}
	}
	return writing{o, map[string]string{o.Key: o.Value}}
}

// acknowledged is the moment from which on a session has to see its write.
type acknowledged struct{}

// everything is what a shard has: all values by key.
type everything map[string]string

// A version is the state of a shard after some of its writes. It does not change.
type version struct {
	n      int // writes
	before *version
	by     string // value of the last write
	values map[string]string
	hash   uint64 // of the writes, in their order
}

// A state is a version, and the version that each session has seen at least: its reads are monotonic and show
// its writes, but may be older than what others have written.
type state struct {
	*version
	seen [maxSessions]int
}

const maxSessions = 16

var seed = maphash.MakeSeed()

// modelOf returns a shard: the order of its writes, and what sessions may see of it. Conditions on doubtful
// keys may fail.
func modelOf(doubtful map[string]bool) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return state{version: &version{}} },
		Equal: func(a, b any) bool {
			return a.(state).hash == b.(state).hash && a.(state).seen == b.(state).seen
		},
		Hash: func(s any) uint64 { return s.(state).hash ^ maphash.Comparable(seed, s.(state).seen) },
		Step: func(before, in, out any) (bool, any) {
			s, o := before.(state), out.(*Op)
			switch in := in.(type) {
			case writing:
				return s.write(in, doubtful[o.Key])
			case acknowledged:
				return s.acknowledge(o)
			case everything:
				if o.Kind == Final { // everybody has everything
					return maps.Equal(s.values, in), s
				}
				return s.read(o, func(values map[string]string) bool { return maps.Equal(values, in) })
			default:
				return s.read(o, func(values map[string]string) bool { return values[o.Key] == o.Read })
			}
		},
		DescribeOperation: func(_, out any) string { return out.(*Op).String() },
		DescribeState: func(s any) string {
			var all []string
			for _, key := range slices.Sorted(maps.Keys(s.(state).values)) {
				all = append(all, key+"="+s.(state).values[key])
			}
			return strings.Join(all, " ")
		},
	}
}

func (s state) write(w writing, doubtful bool) (bool, state) {
	o := w.op
	result := o.Result
	if o.Later == OK || o.Later == Refused {
		result = o.Later
	}
	holds := o.Kind != PutIf || s.values[o.Key] == o.Old
	switch {
	case result == OK && !holds, result == Refused && holds && !doubtful:
		return false, s
	case result == Refused || !holds:
		return true, s
	}
	next := &version{n: s.n + 1, before: s.version, by: o.Value, values: maps.Clone(s.values)}
	if next.values == nil {
		next.values = map[string]string{}
	}
	for key, value := range w.changes {
		if next.values[key] = value; value == "" {
			delete(next.values, key)
		}
	}
	next.hash = maphash.Comparable(seed, struct {
		before uint64
		value  string
	}{s.hash, o.Value})
	s.version = next
	return true, s
}

func (s state) acknowledge(o *Op) (bool, state) {
	for v := s.version; v != nil; v = v.before {
		if v.by == o.Value {
			s.seen[o.Session] = max(s.seen[o.Session], v.n)
			return true, s
		}
	}
	return false, s // its place is still to come
}

// read allows an answer that some version gives, and notes the earliest that the session may have seen.
func (s state) read(o *Op, is func(values map[string]string) bool) (bool, state) {
	earliest := -1
	for v := s.version; v != nil && v.n >= s.seen[o.Session]; v = v.before {
		if is(v.values) {
			earliest = v.n
		}
	}
	if earliest < 0 {
		return false, s
	}
	s.seen[o.Session] = earliest
	return true, s
}
