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

// An Operation is one that goes on: it is in Activity, has a span, and events tell of it.
// Safe for concurrent use.
type Operation struct {
	s          *Sender
	ctx        context.Context
	op         event.Op
	id         uint64
	collection string
	background bool // nobody gets its error
	began      time.Time
	span       event.Span // nil: nobody asks

	mu          sync.Mutex
	ended       bool
	stage       string
	done, total int64
	told        time.Time // when progress was
}

// Operations are those that go on, and what has become of the others.
type Operations struct {
	mu     sync.Mutex
	last   uint64
	going  []*Operation
	totals []event.OperationStats // one an Op
}

// Begin begins an operation; end must be called. The context is the one to go on with.
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

// BeginInBackground begins an operation that nobody waits for.
func (s *Sender) BeginInBackground(ctx context.Context, op event.Op, collection string) (context.Context, *Operation) {
	ctx, o := s.Begin(ctx, op, collection)
	o.background = true
	return ctx, o
}

// BeginUntraced is beginInBackground of what goes on all the time and for nobody: spans of
// it, each a trace of its own, would only hide others. Events and Activity have it.
func (s *Sender) BeginUntraced(ctx context.Context, op event.Op, collection string) (context.Context, *Operation) {
	ctx, o := s.start(ctx, op, collection, false)
	o.background = true
	return ctx, o
}

func (o *Operation) tell(e event.Event) {
	e.Op, e.Operation = o.op, o.id
	e.Name = event.NameOf(e.Op, e.Phase)
	if e.Collection == "" {
		e.Collection = o.collection
	}
	o.s.Tell(o.ctx, e)
}

// progressEvery is how often events tell of progress.
const progressEvery = time.Second

// Progress notes how far it has come. It costs nothing to call often.
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

// Telling returns what notes how far the operation has come, and then tells also, if that
// is not nil.
func (o *Operation) Telling(also event.Progress) event.Progress {
	if also == nil {
		return o.Progress
	}
	return func(stage string, done, total int64) {
		o.Progress(stage, done, total)
		also(stage, done, total)
	}
}

// errAbandoned is what has become of an operation in which something has panicked.
var errAbandoned = errors.New("ended by a panic")

// Abandon ends the operation, unless that has been done.
func (o *Operation) Abandon() { o.End(errAbandoned, event.Event{}) }

// End ends the operation, unless that has been done. What has come of it is in e, whose
// level is that of success: Info by default.
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
		default: // whoever has called hears of it
			e.Level = slog.LevelWarn
		}
	}
	o.s.Operations.leave(o, &e, cancelled)
	if o.span != nil {
		said := e
		said.Duration, said.Err = 0, nil // which a span has anyway
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

// Count adds an operation that has ended.
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

// Stats returns what goes on, as it has begun, and what has ended.
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
