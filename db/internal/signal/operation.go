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

// An Operation is a running operation: Activity lists it, it has a span, and events
// report it. It is safe for concurrent use.
type Operation struct {
	s          *Sender         // gets its events
	ctx        context.Context // of the call, for its values
	op         event.Op
	id         uint64 // number of the operation
	collection string
	background bool // its error reaches no caller
	began      time.Time
	span       event.Span // nil: there is no tracer

	mu          sync.Mutex // guards the fields below
	ended       bool
	stage       string
	done, total int64
	told        time.Time // when progress was reported last
}

// Operations are the running operations, and counts of the ended ones.
type Operations struct {
	mu     sync.Mutex             // guards the fields below
	last   uint64                 // number of the last operation
	going  []*Operation           // running operations, in order of their begin
	totals []event.OperationStats // one for each Op
}

// Begin begins an operation, which the caller ends with End. The caller goes on with
// the returned context.
func (s *Sender) Begin(ctx context.Context, op event.Op, collection string) (context.Context, *Operation) {
	return s.start(ctx, op, collection, s != nil && s.Tracer != nil)
}

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

// BeginInBackground begins an operation that no caller waits for.
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

// Progress records the progress of the operation, and reports it now and then. It is
// cheap to call often.
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

// Abandon ends the operation as failed, unless it has ended. It is meant for defer.
func (o *Operation) Abandon() { o.End(errAbandoned, event.Event{}) }

// End ends the operation, unless it has ended. e has the result; its level is used on
// success, Info by default.
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

func (all *Operations) leave(o *Operation, e *event.Event, cancelled bool) {
	all.mu.Lock()
	all.going = slices.DeleteFunc(all.going, func(other *Operation) bool { return other == o })
	all.mu.Unlock()
	all.Count(o.op, e.Duration, e.Err != nil, cancelled)
}

// Count counts an operation that has ended.
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
// ended ones.
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
