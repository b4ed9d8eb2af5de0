package checker

import (
	"fmt"
	"sync"
	"time"

	"github.com/fddhdb/fddhdb/db/cluster/internal/apply"
)

type Kind uint8

// Put, PutIf and Delete write; Get, Search and Count read.
const (
	Put    Kind = 1 + iota
	PutIf       // if Key has Old
	Delete      // also puts Value under Tag, in the same batch
	Get
	Search // all items of all shards
	Count
)

var kinds = [...]string{Put: "put", PutIf: "put-if", Delete: "delete", Get: "get", Search: "search",
	Count: "count"}

func (k Kind) String() string { return kinds[k] }

// Writes reports whether operations of this kind write.
func (k Kind) Writes() bool { return k <= Delete }

// A Result says how an operation has ended.
type Result uint8

const (
	OK      Result = 1 + iota
	Refused        // the condition of a PutIf did not hold
	Failed         // a write has not happened and will not; a read has no answer
	Unknown        // a write may have happened, or may happen yet
)

var results = [...]string{OK: "ok", Refused: "refused", Failed: "failed", Unknown: "unknown"}

func (r Result) String() string { return results[r] }

// An Op is an operation of a client, as the client saw it.
type Op struct {
	Session int // the client; its reads are monotonic and show its writes
	Kind    Kind
	Key     string // of writes and of Get
	Value   string // of writes; unique
	Tag     string // of Delete: the key that gets Value
	Old     string // of PutIf: the expected value; empty: none

	Begin, End time.Duration // by the one clock of the history
	Result     Result
	Err        string // unless Result is OK
	Cause      string // kind of that error, for counts

	Read  string            // of Get: the value; empty: none
	Items map[string]string // of Search: all values by key
	N     int               // of Count

	// Later is the answer to the client's question for the outcome of an Unknown: OK, Refused, or Unknown if
	// no replica knew the operation. 0: it did not ask. Asked is when the question began.
	Later Result
	Asked time.Duration

	// Patient says that the operation had enough time to outlast an election. An impatient one may fail
	// without a fault.
	Patient bool
}

func (o *Op) String() string {
	s := fmt.Sprintf("session %d, %.3f-%.3f s: %v", o.Session, o.Begin.Seconds(), o.End.Seconds(), o.Kind)
	if o.Key != "" {
		s += " " + o.Key
	}
	if o.Kind.Writes() {
		s += " " + o.Value
	}
	if o.Kind == PutIf {
		s += fmt.Sprintf(" if %q", o.Old)
	}
	s += ": " + o.Result.String()
	switch {
	case o.Result != OK:
		s += " (" + o.Err + ")"
	case o.Kind == Get:
		s += fmt.Sprintf(" %q", o.Read)
	case o.Kind == Search:
		s += fmt.Sprintf(" %v", o.Items)
	case o.Kind == Count:
		s += fmt.Sprintf(" %d", o.N)
	}
	if o.Later != 0 {
		s += ", asked at " + fmt.Sprintf("%.3f", o.Asked.Seconds()) + ": " + o.Later.String()
	}
	return s
}

// A History collects operations. Its methods may be called from any goroutine.
type History struct {
	start time.Time

	mu  sync.Mutex
	ops []Op
}

// NewHistory returns an empty history whose clock begins now.
func NewHistory() *History { return &History{start: time.Now()} }

// Now reads the monotonic clock of the history.
func (h *History) Now() time.Duration { return time.Since(h.start) }

// Add adds an operation that has ended.
func (h *History) Add(o Op) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, o)
}

// Ops returns the operations. Do not change the slice while others are added.
func (h *History) Ops() []Op {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ops
}

var sprintf = fmt.Sprintf

// A Rule is a guarantee that a Violation breaks.
type Rule string

const (
	Lost     Rule = "an acknowledged write is not in the log"
	Twice    Rule = "a write has been applied twice"
	Happened Rule = "a write that has failed for certain has been applied"
	Refusal  Rule = "a write was refused whose condition holds, or succeeded though it does not"
	Told     Rule = "the outcome of a write was told wrongly"
	Order    Rule = "a write stands before one that was acknowledged before it began"
	Stale    Rule = "a read shows less than its session has seen"
	Early    Rule = "a read shows what is written later"
	Torn     Rule = "a read shows a state that there has never been"
	Foreign  Rule = "the log has what nobody has written"
)

// A Violation is a broken rule, with the evidence.
type Violation struct {
	Rule Rule
	Text string
}

func (v Violation) String() string { return string(v.Rule) + ": " + v.Text }

// A Finding is the result of Check.
type Finding struct {
	Violations []Violation
	Final      []map[string]string // values by key at the end of each log
	Reads      int                 // reads compared with the logs
	Writes     int                 // writes applied in the logs
}

// Check compares a history with the complete logs of all shards. shardOf returns the shard of a key. It takes
// about n log n time in the number of operations.
func Check(ops []Op, logs [][]apply.Message, shardOf func(key string) int) *Finding {
	c := &check{ops: ops, shardOf: shardOf, found: &Finding{}}
	begins := map[string]time.Duration{}
	for i := range ops {
		if o := &ops[i]; o.Kind.Writes() {
			begins[o.Value] = o.Begin
		}
	}
	for shard, log := range logs {
		t := replay(shard, log, func(value string) (time.Duration, bool) {
			b, ok := begins[value]
			return b,
				ok
		})
		c.logs = append(c.logs, t)
		c.found.Final = append(c.found.Final, t.final())
		for _, text := range t.odd {
			c.violated(Foreign, "%s", text)
		}
	}
	c.writes()
	c.order()
	c.reads()
	return c.found
}

// A check is a run of Check.
type check struct {
	ops     []Op
	logs    []*timeline
	shardOf func(key string) int
	seqs    []uint64 // by operation: the message that decided a write; 0: none
	found   *Finding
}

func (c *check) violated(r Rule, format string, args ...any) {
	c.found.Violations = append(c.found.Violations, Violation{r, sprintf(format, args...)})
}

// A Fault is a fault of the cluster with its duration.
type Fault struct {
	What       string
	Begin, End time.Duration // by the clock of the history
}

// Unexplained returns the patient operations that got no answer although there was no fault while they
// waited, or shortly before.
func Unexplained(ops []Op, faults []Fault, after time.Duration) (all []*Op) {
	for i := range ops {
		o := &ops[i]
		if !o.Patient || o.Result != Failed && o.Result != Unknown {
			continue
		}
		explained := false
		for _, f := range faults {
			if f.Begin <= o.End && o.Begin <= f.End+after {
				explained = true
				break
			}
		}
		if !explained {
			all = append(all, o)
		}
	}
	return all
}
