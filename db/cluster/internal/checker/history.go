package checker

import (
	"fmt"
	"sync"
	"time"
)

type Kind uint8

// Put, PutIf and Delete write; Get, Search and Count read.
const (
	Put    Kind = 1 + iota
	PutIf       // if Key has Old
	Delete      // also puts Value under Tag, in the same batch
	Get
	Search // all items of all shards
	Final  // a Search when all replicas have everything
	Count  // is not checked
)

var kinds = [...]string{Put: "put", PutIf: "put-if", Delete: "delete", Get: "get", Search: "search",
	Final: "final", Count: "count"}

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
	// no replica knew the operation. 0: it did not ask. End is when it had the answer.
	Later Result

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
	case o.Kind == Search, o.Kind == Final:
		s += fmt.Sprintf(" %v", o.Items)
	case o.Kind == Count:
		s += fmt.Sprintf(" %d", o.N)
	}
	if o.Later != 0 {
		s += ", asked: " + o.Later.String()
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
