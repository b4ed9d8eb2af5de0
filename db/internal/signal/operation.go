package signal

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
)

// An Operation is something that takes long, such as a training: Activity lists it while it
// runs, it has a span, and events report its begin, progress and end. Its methods are safe
// for concurrent use. One of a nil Sender reports nothing.
//
// The usual form is
//
//	ctx, op := signals.Begin(ctx, event.OpTrain, name)
//	defer op.Abandon()
//	...
//	op.End(err, event.Event{Items: n})
type Operation struct {
	s          *Sender         // gets its events; nil: nobody does
	ctx        context.Context // that Begin returned: for its values, and to tell a cancelled operation
	op         event.Op        // kind of the operation
	id         uint64          // number of the operation, from 1, since the database was opened
	collection string          // name; "": it is about the whole database
	background bool            // its error reaches no caller, so that the event of a failure is an error and not a warning
	began      time.Time
	span       event.Span // nil: there is no tracer, or it has no span

	mu          sync.Mutex // guards the fields below
	ended       bool       // End has been called
	stage       string     // last progress; "" before the first
	done, total int64
	told        time.Time // when an event last reported progress
}

// Operations are the running operations, and counts of the ended ones. The zero value is
// empty. A Sender has one; the store has another for its flushes and compactions, of which
// it uses the counts alone.
type Operations struct {
	mu     sync.Mutex             // guards the fields below
	last   uint64                 // number of the last operation
	going  []*Operation           // running operations, in order of their begin
	totals []event.OperationStats // one for each Op of which one has ended
}

// Begin begins an operation of a collection, "" for the whole database. The caller goes on
// with the returned context, which has the span, and ends the operation with End.
func (s *Sender) Begin(ctx context.Context, op event.Op, collection string) (context.Context, *Operation) {
	return s.start(ctx, op, collection, s != nil && s.Tracer != nil)
}

// start is Begin, with a span if traced.
func (s *Sender) start(ctx context.Context, op event.Op, collection string, traced bool) (context.Context, *Operation) {
	o := &Operation{s: s, op: op, collection: collection, began: time.Now()}
	if s == nil {
		return ctx, o
	}
	if traced {
		ctx, o.span = s.Tracer.Start(ctx, event.Call{Op: op, Dir: s.dir, Collection: collection})
	}
	o.ctx = ctx
	all := &s.Operations
	all.mu.Lock()
	all.last++
	o.id = all.last
	all.going = append(all.going, o)
	all.mu.Unlock()
	o.tell(event.Event{Phase: event.PhaseBegin, Level: slog.LevelDebug, Time: o.began})
	return ctx, o
}

// BeginInBackground is Begin for an operation that no caller waits for: if it fails, the
// event is all that anybody hears of it.
func (s *Sender) BeginInBackground(ctx context.Context, op event.Op, collection string) (context.Context, *Operation) {
	ctx, o := s.Begin(ctx, op, collection)
	o.background = true
	return ctx, o
}

// BeginUntraced is BeginInBackground without a span, for work that goes on all the
// time: its spans, each a trace of its own, would only hide others. It has events, and
// Activity lists it.
func (s *Sender) BeginUntraced(ctx context.Context, op event.Op, collection string) (context.Context, *Operation) {
	ctx, o := s.start(ctx, op, collection, false)
	o.background = true
	return ctx, o
}

// tell sends an event about the operation.
func (o *Operation) tell(e event.Event) {
	e.Op, e.Operation = o.op, o.id
	e.Name = event.NameOf(e.Op, e.Phase)
	if e.Collection == "" {
		e.Collection = o.collection
	}
	o.s.Tell(o.ctx, e)
}

// progressEvery is the least interval of events about progress.
const progressEvery = time.Second

// Progress records the progress of the operation for Activity, and sends an event when the
// stage has changed or a second has passed. It does not wait, and is cheap to call often. It
// is an event.Progress.
func (o *Operation) Progress(stage string, done, total int64) {
	if o.s == nil {
		return
	}
	now := time.Now()
	o.mu.Lock()
	tell := stage != o.stage || now.Sub(o.told) >= progressEvery
	o.stage, o.done, o.total = stage, done, total
	if tell {
		o.told = now
	}
	o.mu.Unlock()
	if tell && o.s.Heard(o.ctx, slog.LevelDebug) {
		o.tell(event.Event{Phase: event.PhaseProgress, Level: slog.LevelDebug, Time: now, Stage: stage, Done: done, Total: total})
	}
}

// Telling returns a function that records the progress of the operation and then calls
// also, if that is not nil.
func (o *Operation) Telling(also event.Progress) event.Progress {
	if also == nil {
		return o.Progress
	}
	return func(stage string, done, total int64) {
		o.Progress(stage, done, total)
		also(stage, done, total)
	}
}

// errAbandoned is the error of an operation that a panic has ended.
var errAbandoned = errors.New("ended by a panic")

// Abandon ends the operation as failed, unless it has ended. Deferred right after Begin, it
// ends an operation whose code has panicked; the panic goes on.
func (o *Operation) Abandon() { o.End(errAbandoned, event.Event{}) }

// End ends the operation, unless it has ended: it leaves Activity, is counted, its span ends,
// and an event reports it. e has the result, such as Items; End fills in the rest. The level
// of e is used on success, Info by default. With an error the level is that of a warning, or
// of an error if no caller gets it. An operation that its context or Close has ended is
// counted as cancelled, and reported at level Info.
func (o *Operation) End(err error, e event.Event) {
	if o.s == nil {
		return
	}
	o.mu.Lock()
	ended := o.ended
	o.ended = true
	o.mu.Unlock()
	if ended {
		return
	}
	e.Time = time.Now()
	e.Phase, e.Err, e.Duration = event.PhaseDone, err, e.Time.Sub(o.began)
	cancelled := err != nil && (o.ctx.Err() != nil || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, fault.ErrClosed))
	if err != nil {
		e.Phase = event.PhaseFailed
		switch {
		case cancelled:
			e.Level = slog.LevelInfo
		case o.background:
			e.Level = slog.LevelError
		default: // the caller gets the error
			e.Level = slog.LevelWarn
		}
	}
	o.s.Operations.leave(o, &e, cancelled)
	if o.span != nil {
		said := e
		said.Duration, said.Err = 0, nil // a span has them anyway
		o.span.End(err, said.Attributes()...)
	}
	o.tell(e)
}

// leave takes an operation from the running ones, and counts it.
func (all *Operations) leave(o *Operation, e *event.Event, cancelled bool) {
	all.mu.Lock()
	all.going = slices.DeleteFunc(all.going, func(other *Operation) bool { return other == o })
	all.mu.Unlock()
	all.Count(o.op, e.Duration, e.Err != nil, cancelled)
}

// Count counts an operation that has ended, under its kind. A cancelled one does not count as
// failed.
func (all *Operations) Count(op event.Op, took time.Duration, failed, cancelled bool) {
	all.mu.Lock()
	defer all.mu.Unlock()
	i := slices.IndexFunc(all.totals, func(t event.OperationStats) bool { return t.Op == op })
	if i < 0 {
		i = len(all.totals)
		all.totals = append(all.totals, event.OperationStats{Op: op})
	}
	t := &all.totals[i]
	switch {
	case cancelled:
		t.Cancelled++
	case failed:
		t.Failed++
	default:
		t.Done++
	}
	t.Duration += took
}

// Stats returns the running operations in order of their begin, and the counts of the
// ended ones, in the order in which kinds have first ended. The slices are the caller's.
func (all *Operations) Stats() (running []event.RunningOperation, ended []event.OperationStats) {
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, o := range all.going {
		o.mu.Lock()
		running = append(running, event.RunningOperation{
			Op: o.op, Collection: o.collection, Began: o.began, Stage: o.stage, Done: o.done, Total: o.total,
		})
		o.mu.Unlock()
	}
	return running, slices.Clone(all.totals)
}
