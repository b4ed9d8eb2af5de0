package checker

import (
	"fmt"
	"sync"
	"time"
)

// A Kind says what an Op does.
type Kind uint8

// The kinds of operations: three that write and three that read.
const (
	Put    Kind = 1 + iota
	PutIf       // if Key has Old
	Delete      // and puts Value under Tag, in the same batch
	Get
	Search // all items of all shards
	Count
)

var kinds = [...]string{Put: "put", PutIf: "put-if", Delete: "delete", Get: "get", Search: "search", Count: "count"}

func (k Kind) String() string { return kinds[k] }

// Writes reports whether operations of this kind write.
func (k Kind) Writes() bool { return k <= Delete }

// A Result says how an operation has ended.
type Result uint8

// The results of operations.
const (
	OK      Result = 1 + iota
	Refused        // a PutIf: its condition did not hold
	Failed         // a write has not happened and will not; a read has no answer
	Unknown        // a write may have happened, or may happen yet
)

var results = [...]string{OK: "ok", Refused: "refused", Failed: "failed", Unknown: "unknown"}

func (r Result) String() string { return results[r] }

// An Op is an operation of a client, as the client has seen it.
type Op struct {
	Session int // the client, whose reads are monotonic and show its writes
	Kind    Kind
	Key     string // of writes and of Get
	Value   string // of writes; no other write has it
	Tag     string // of Delete: the key that gets Value
	Old     string // of PutIf: the value that is expected; empty: there is none

	Begin, End time.Duration // by the one clock of the history
	Result     Result
	Err        string // of what is not OK
	Cause      string // the kind of that error, to count by

	Read  string            // of Get: the value; empty: there is none
	Items map[string]string // of Search: all values by key
	N     int               // of Count

	// Later is what the client was told when it asked for the outcome of an Unknown: OK, Refused, or
	// Unknown where no replica knew of the operation. 0: it was not asked. Asked is when the question began.
	Later Result
	Asked time.Duration

	// Patient says that the operation had time enough to outlast an election. An impatient one may fail
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

// Now reads the clock of the history, which is monotonic.
func (h *History) Now() time.Duration { return time.Since(h.start) }

// Add adds an operation that has ended.
func (h *History) Add(o Op) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, o)
}

// Ops returns the operations. The slice is not to be changed while others are added.
func (h *History) Ops() []Op {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ops
}
