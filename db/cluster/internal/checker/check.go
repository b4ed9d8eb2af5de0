package checker

import (
	"cmp"
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
// answer. One that is not found in some hundred thousand steps is reported, too, as undecided: many writes at
// a time have many orders. visual, unless "", is the path of a page for each shard without such an order,
// without the number of the shard and ".html".
func Check(ops []Op, shards int, shardOf func(key string) int, visual string) (found []Violation) {
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
		case o.Kind == PutIf && o.result() == OK:
			see(o.Old)
		case o.Result == OK:
			see(o.Read)
			for _, value := range o.Items {
				see(value)
			}
		}
	}
	for more := true; more; { // a write on condition that somebody has seen shows what it has replaced
		more = false
		for i := range ops {
			o := &ops[i]
			at, has := seen[o.Value]
			if _, known := seen[o.Old]; o.Kind == PutIf && o.Old != "" && has && !known {
				seen[o.Old], more = at, true
			}
		}
	}
	histories := make([]history, shards)
	for i := range histories {
		histories[i].doubtful = map[string]time.Duration{}
	}
	shows := func(o *Op, value string) {
		if w := failed[value]; w != nil {
			found = append(found, Violation(fmt.Sprintf("%v shows a write that has failed for certain: %v", o, w)))
		}
	}
	for i := range ops {
		o := &ops[i]
		switch {
		case o.Kind.Writes():
			first, has := seen[o.Value]
			histories[shardOf(o.Key)].write(o, first, has)
		case o.Result != OK:
		case o.Kind == Get:
			shows(o, o.Read)
			h := &histories[shardOf(o.Key)]
			h.seen = append(h.seen, &observation{Op: o, reads: true})
		case o.Kind == Search || o.Kind == Final:
			all := make([]map[string]string, shards)
			for key, value := range o.Items {
				shows(o, value)
				s := shardOf(key)
				if all[s] == nil {
					all[s] = map[string]string{}
				}
				all[s][key] = value
			}
			for s, items := range all {
				histories[s].seen = append(histories[s].seen, &observation{Op: o, reads: true, items: items})
			}
		}
	}
	for shard := range histories {
		if text := histories[shard].check(shard, visual); text != "" {
			found = append(found, Violation(text))
		}
	}
	return found
}

// A history has the writes of one shard, and what sessions have seen of it.
type history struct {
	writes   []writing
	seen     []*observation
	doubtful map[string]time.Duration // keys with a write that may have happened, and when the first began
}

// A writing is a write that has a place in the order, between two times.
type writing struct {
	*Op
	end     time.Duration     // somebody has seen it, or knows that it has happened; or never
	seen    bool              // somebody has seen it
	changes map[string]string // values by key; empty: none
}

const never = time.Duration(math.MaxInt64)

// An observation is what a session has seen of a shard when an operation ended: a state that some version
// has; or, of a write, that it has a place; or, of a refused one, that its condition did not hold in between.
type observation struct {
	*Op
	reads bool
	items map[string]string // of Search and Final: all values of the shard
}

// of reports whether a read shows these values.
func (o *observation) of(values map[string]string) bool {
	if o.Kind == Get {
		return values[o.Key] == o.Read
	}
	return maps.Equal(values, o.items)
}

// shows returns the value of a key that a read shows; empty: none, or it does not say.
func (o *observation) shows(key string) string {
	switch {
	case o.items != nil:
		return o.items[key]
	case o.reads && o.Kind == Get && o.Key == key:
		return o.Read
	}
	return ""
}

// write adds a write, whose value somebody may have seen first at a time.
func (h *history) write(o *Op, first time.Duration, seen bool) {
	w := writing{Op: o, end: o.End, changes: map[string]string{o.Key: o.Value}}
	if o.Kind == Delete {
		w.changes = map[string]string{o.Key: "", o.Tag: o.Value}
	}
	switch {
	case o.Result == Failed:
		return
	case o.result() == Unknown && !seen && o.Kind != Delete:
		// nobody has seen it, so it matters to conditions alone
		if at, has := h.doubtful[o.Key]; !has || o.Begin < at {
			h.doubtful[o.Key] = o.Begin
		}
		return
	case o.result() == Unknown:
		w.end = never
	case o.result() == OK:
		h.seen = append(h.seen, &observation{Op: o})
	case o.result() == Refused: // it changes nothing
		h.seen = append(h.seen, &observation{Op: o})
		return
	}
	if w.seen = seen; seen { // it had its place before
		w.end = max(o.Begin, min(w.end, first))
	}
	h.writes = append(h.writes, w)
}

// result returns the result that is known in the end.
func (o *Op) result() Result {
	if o.Result == Unknown && (o.Later == OK || o.Later == Refused) {
		return o.Later
	}
	return o.Result
}

// operations returns the history as porcupine wants it. What is seen has a place at the end of its operation:
// that is no loss, since a read may show an older state. All that is seen between the ends of two writes
// is one operation, so that there are few places to try. A write that somebody has seen has its place at most
// slack before.
func (h *history) operations(slack time.Duration) (all []porcupine.Operation) {
	type mark struct {
		at    time.Duration
		class int // at the same time: begins of writes, then ends, then what is seen
		i     int
	}
	var marks []mark
	for i, w := range h.writes {
		begin := w.Begin
		if w.seen {
			begin = max(begin, w.end-slack)
		}
		marks = append(marks, mark{begin, 0, i}, mark{w.end, 1, i})
		all = append(all, porcupine.Operation{ClientId: w.Session, Input: w, Output: w.Op})
	}
	for i, o := range h.seen {
		marks = append(marks, mark{o.End, 2, i})
	}
	slices.SortFunc(marks, func(a, b mark) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.class, b.class), cmp.Compare(a.i, b.i))
	})
	var some []*observation
	flush := func(at int) {
		if len(some) > 0 {
			all = append(all, porcupine.Operation{ClientId: maxSessions, Input: some, Output: some[0].Op,
				Call: int64(2*at - 1), Return: int64(2*at - 1)})
			some = nil
		}
	}
	for at, m := range marks {
		switch m.class {
		case 0:
			all[m.i].Call = int64(2 * at)
		case 1:
			flush(at)
			if all[m.i].Return = int64(2 * at); m.at == never {
				all[m.i].Return = math.MaxInt64
			}
		case 2:
			some = append(some, h.seen[m.i])
		}
	}
	flush(len(marks))
	return all
}

// Bounds of the steps of a search, and so of its memory: so many, and more for each operation.
const (
	mostSteps = 300_000
	stepsEach = 50
)

// slacks are the times before somebody sees a write in which its place is looked for, one after the other. An
// order in which writes have their places shortly before somebody sees them is found soonest.
var slacks = [...]time.Duration{time.Second, 10 * time.Second, never}

// check searches for an order, and says why there is none.
func (h *history) check(shard int, visual string) string {
	var all []porcupine.Operation
	var m *model
	for _, slack := range slacks {
		all = h.operations(slack)
		if m = h.model(all); porcupine.CheckOperations(m.Model, all) {
			return ""
		}
		if m.steps <= m.most {
			continue
		}
		// Undecided: most keys of a long history have a write that may have happened, which may explain a
		// refusal. So it looks once more without their refusals.
		if m = h.model(all); m.lenient(all) {
			return ""
		}
	}
	text := fmt.Sprintf("shard %d: no order explains %d writes", shard, len(h.writes))
	if m.steps > m.most {
		text = fmt.Sprintf("shard %d: undecided: in %d steps no order was found that explains %d writes", shard,
			m.most, len(h.writes))
	}
	m = h.model(all)
	_, info := porcupine.CheckOperationsVerbose(m.Model, all, 0)
	for _, o := range unexplained(all, info) {
		text += fmt.Sprintf("\n\t%v", o)
	}
	if path := fmt.Sprintf("%s%d.html", visual, shard); visual != "" {
		m.most = math.MaxInt // it goes through all orders again
		if err := porcupine.VisualizePath(m.Model, info, path); err == nil {
			text += "\n\tsee " + path
		}
	}
	return text
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
		switch in := o.Input.(type) {
		case []*observation:
			if !longest[i] {
				for _, o := range in {
					some = append(some, o.Op)
				}
			}
		default:
			if !longest[i] && o.Return != math.MaxInt64 {
				some = append(some, o.Output.(*Op))
			}
		}
	}
	slices.SortStableFunc(some, func(a, b *Op) int { return cmp.Compare(a.End, b.End) })
	return some[:min(len(some), 5)]
}

// A version is the state of a shard after some of its writes. It does not change.
type version struct {
	n      int // writes
	before *version
	by     string        // value of the last write
	begun  time.Duration // when the last of them began
	end    time.Duration // when the last write had its place at the latest
	values map[string]string
	hash   uint64 // of the writes, in their order
}

// A sight is the version that a session has seen at a time, and what it had seen before.
type sight struct {
	end    time.Duration
	n      int // at least, of this and all before
	before *sight
}

// A state is a version, and what each session has seen, which follows from the order of the writes.
type state struct {
	*version
	seen    [maxSessions]*sight
	refused *sight // the versions by which conditions did not hold
	loose   bool   // the last write is not needed yet
	at      int    // bundles of observations so far
	full    bool   // it explains the next bundle, and so needs no further write before it
}

const maxSessions = 16

var seed = maphash.MakeSeed()

// A model is a shard: the order of its writes, and what sessions may see of it. Conditions on doubtful keys
// may fail. A write has its place just before it is needed, or before another one that is: any order can be
// brought into that form, and the search tries far fewer of them.
type model struct {
	porcupine.Model
	doubtful    map[string]time.Duration
	follows     map[string]string // by value: the value that replaces it, on a condition that held
	bundles     [][]*observation  // in their order
	steps, most int               // behind most steps it refuses all
}

// model returns the shard, for operations.
func (h *history) model(all []porcupine.Operation) *model {
	m := &model{doubtful: h.doubtful, follows: map[string]string{}, most: mostSteps + stepsEach*len(all)}
	for _, w := range h.writes {
		if w.Kind == PutIf {
			m.follows[w.Old] = w.Value
		}
	}
	for _, o := range all {
		if some, is := o.Input.([]*observation); is {
			m.bundles = append(m.bundles, some)
		}
	}
	begin := m.looked(state{version: &version{}})
	m.Model = porcupine.Model{
		Init: func() any { return begin },
		Equal: func(a, b any) bool {
			return a.(state).hash == b.(state).hash && a.(state).loose == b.(state).loose
		},
		Hash: func(s any) uint64 { return s.(state).hash },
		Step: func(before, in, _ any) (bool, any) {
			s := before.(state)
			if m.steps++; m.steps > m.most {
				return false, s
			}
			ok, next := false, s
			switch in := in.(type) {
			case writing:
				if !s.full && !m.spoils(s, in) {
					ok, next = s.write(in)
				}
			case []*observation:
				ok, next = s.answer(in, m.doubtful)
			}
			if ok {
				next = m.looked(next)
			}
			return ok, next
		},
		DescribeOperation: func(in, out any) string {
			if some, ok := in.([]*observation); ok {
				text := fmt.Sprintf("%d answers", len(some))
				for _, o := range some {
					text += "\n" + o.String()
				}
				return text
			}
			return out.(*Op).String()
		},
		DescribeState: func(s any) string {
			var all []string
			for _, key := range slices.Sorted(maps.Keys(s.(state).values)) {
				all = append(all, key+"="+s.(state).values[key])
			}
			return strings.Join(all, " ")
		},
	}
	return m
}

// lenient searches for an order that need not explain refusals of doubtful keys.
func (m *model) lenient(all []porcupine.Operation) bool {
	m.doubtful = maps.Clone(m.doubtful)
	for key := range m.doubtful {
		m.doubtful[key] = 0
	}
	return porcupine.CheckOperations(m.Model, all)
}

// looked notes in a state whether it explains the next bundle.
func (m *model) looked(s state) state {
	if s.full = false; s.at < len(m.bundles) {
		s.full, _ = s.answer(m.bundles[s.at], m.doubtful)
	}
	return s
}

// ahead is how many bundles spoils looks at.
const ahead = 64

// spoils reports whether a write replaces a value that another one replaces on condition, or that a later
// answer shows beside others that no version so far has together: a value is written once, so the condition
// would never hold, and no version would have them.
func (m *model) spoils(s state, w writing) bool {
	for key := range w.changes {
		is := s.values[key]
		if by := m.follows[is]; is != "" && by != "" && by != w.Value {
			return true
		}
	}
	for _, some := range m.bundles[s.at:min(s.at+ahead, len(m.bundles))] {
		for _, o := range some {
			for key := range w.changes {
				if is := s.values[key]; is != "" && o.shows(key) == is && !s.explains(o) {
					return true
				}
			}
		}
	}
	return false
}

// explains reports whether a version that there is can be what a read has seen.
func (s *state) explains(o *observation) bool {
	if o.Kind == Final {
		return false
	}
	least := s.least(o)
	for v := s.version; v != nil && v.n >= least; v = v.before {
		if o.of(v.values) {
			return true
		}
	}
	return false
}

// least returns the number of the earliest version that a session may see.
func (s *state) least(o *observation) int {
	for at := s.seen[o.Session]; at != nil; at = at.before {
		if at.end < o.Begin {
			return at.n
		}
	}
	return 0
}

// answer notes what sessions have seen. It is false if they cannot have seen it, or if it does not need the
// last write.
func (s state) answer(some []*observation, doubtful map[string]time.Duration) (bool, state) {
	needed, before := !s.loose, s
	for _, o := range some {
		n, ok := 0, false
		if o.result() != Refused {
			n, ok = s.see(o)
		} else if n, ok = s.refuse(o); !ok {
			at, has := doubtful[o.Key]
			ok = has && at <= o.End
		}
		if !ok {
			return false, before
		}
		needed = needed || n == s.n
	}
	s.loose = false
	s.at++
	return needed, s
}

func (s state) write(w writing) (bool, state) {
	if w.Kind == PutIf && s.values[w.Key] != w.Old {
		return false, s
	}
	next := &version{n: s.n + 1, before: s.version, by: w.Value, begun: max(s.begun, w.Begin), end: w.end,
		values: maps.Clone(s.values)}
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
	}{s.hash, w.Value})
	s.version, s.loose = next, true
	return true, s
}

// refuse finds the earliest version, of those that there can have been while a write was on its way, by which
// its condition does not hold. Writes and refusals that had ended before it have their places before it. It
// returns the number of the version.
func (s *state) refuse(o *observation) (n int, ok bool) {
	least := s.least(o)
	for at := s.refused; at != nil; at = at.before {
		if at.end < o.Begin {
			least = max(least, at.n)
			break
		}
	}
	n = -1
	for v := s.version; v != nil && v.n >= least; v = v.before {
		if v.begun <= o.End && v.values[o.Key] != o.Old {
			n = v.n
		}
		if v.end < o.Begin {
			break
		}
	}
	if n < 0 {
		return n, false
	}
	s.refused = sightOf(o, n, s.refused)
	s.seen[o.Session] = sightOf(o, n, s.seen[o.Session])
	return n, true
}

// sightOf returns the sight of a version by an operation, with those before.
func sightOf(o *observation, n int, before *sight) *sight {
	if before != nil {
		n = max(n, before.n)
	}
	return &sight{end: o.End, n: n, before: before}
}

// see notes what a session has seen, if it can have seen it: the earliest version that explains it. It
// returns the number of that version.
func (s *state) see(o *observation) (n int, ok bool) {
	if o.Kind == Final { // everybody has everything
		return s.n, o.of(s.values)
	}
	least := s.least(o)
	n = -1
	for v := s.version; v != nil && (!o.reads && n < 0 || v.n >= least); v = v.before {
		if !o.reads && v.by == o.Value || o.reads && v.begun <= o.End && o.of(v.values) {
			n = v.n
		}
	}
	if n >= 0 && (o.reads || o.Result == OK) { // one of unknown result has told the session nothing
		s.seen[o.Session] = sightOf(o, n, s.seen[o.Session])
	}
	return n, n >= 0
}
