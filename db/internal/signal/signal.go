package signal

import (
	"context"
	"errors"
	"log/slog"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/work"
)

// A Call is a short call that is running, such as a search: it is counted, but has no events. It is a value,
// so that it allocates nothing.
type Call struct {
	began time.Duration // since epoch
}

// epoch is the time from which short calls are measured. time.Since reads the monotonic clock
// alone, in half the time of time.Now. In a search of a microsecond that makes a difference.
var epoch = time.Now()

// NewCall begins a call.
func NewCall() Call { return Call{time.Since(epoch)} }

// Took returns how long the call has been going on.
func (c Call) Took() time.Duration { return time.Since(epoch) - c.began }

// Latencies are event.Latencies under construction: a histogram that any goroutine may add
// to, without a lock. The zero value is empty.
type Latencies struct {
	sum     atomic.Int64                        // nanoseconds
	buckets [event.LatencyBuckets]atomic.Uint64 // calls by duration; see event.LatencyBound
}

// Observe counts a call that took d. It costs two atomic additions.
func (l *Latencies) Observe(d time.Duration) {
	d = max(d, 0)
	l.sum.Add(int64(d))
	// i is how often a microsecond has to be doubled to reach d.
	i := bits.Len64(uint64(max(d-1, 0) / time.Microsecond))
	l.buckets[min(i, event.LatencyBuckets-1)].Add(1)
}

// Since counts a call that began at start and ends now.
func (l *Latencies) Since(start time.Time) { l.Observe(time.Since(start)) }

// Stats returns the histogram as it is now. A call that is counted meanwhile may be in Sum
// and not in Buckets. Count is always the sum of Buckets, which event.Latencies.Quantile
// relies on.
func (l *Latencies) Stats() (out event.Latencies) {
	out.Sum = time.Duration(l.sum.Load())
	for i := range l.buckets {
		out.Buckets[i] = l.buckets[i].Load()
		out.Count += out.Buckets[i]
	}
	return out
}

// An Operation is something that takes long, such as a training: Activity lists it while it
// runs, and events report its begin, progress and end. Its methods are safe
// for concurrent use. One of a nil Sender reports nothing.
//
// The usual form is
//
//	op := signals.Begin(ctx, event.OpTrain, name)
//	defer op.Abandon()
//	...
//	op.End(err, event.Event{Items: n})
type Operation struct {
	s          *Sender         // gets its events; nil: nobody does
	ctx        context.Context // of Begin: for its values, and to tell a cancelled operation
	op         event.Op        // kind of the operation
	id         uint64          // number of the operation, from 1, since the database was opened
	collection string          // name; "": it is about the whole database
	// its error reaches no caller, so that the event of a failure is an error and not a warning
	background bool
	began      time.Time

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

// Begin begins an operation of a collection, "" for the whole database. The caller ends it with End.
func (s *Sender) Begin(ctx context.Context, op event.Op, collection string) *Operation {
	return s.begin(ctx, op, collection, false)
}

// BeginInBackground is Begin for an operation that no caller waits for: if it fails, the
// event is all that anybody hears of it.
func (s *Sender) BeginInBackground(ctx context.Context, op event.Op, collection string) *Operation {
	return s.begin(ctx, op, collection, true)
}

func (s *Sender) begin(ctx context.Context, op event.Op, collection string, background bool) *Operation {
	o := &Operation{s: s, ctx: ctx, op: op, collection: collection, background: background, began: time.Now()}
	if s == nil {
		return o
	}
	all := &s.Operations
	all.mu.Lock()
	all.last++
	o.id = all.last
	all.going = append(all.going, o)
	all.mu.Unlock()
	o.tell(event.Event{Phase: event.PhaseBegin, Level: slog.LevelDebug, Time: o.began})
	return o
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
		o.tell(event.Event{Phase: event.PhaseProgress, Level: slog.LevelDebug, Time: now, Stage: stage,
			Done: done, Total: total})
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

// End ends the operation, unless it has ended: it leaves Activity, is counted, and an event
// reports it. e has the result, such as Items; End fills in the rest. The level
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

// A Sender sends events to the program that embeds the database. Tell puts an event
// into a queue, under any lock. A goroutine that exists while there are events hands
// them on, in the order in which they came. So neither a listener nor a logger ever holds
// up the database. The zero value sends nothing, nor does a nil Sender, of which only
// Begin and its kin, Heard, Tell, Happened and Wait may be called. But for About a Sender is
// safe for concurrent use.
type Sender struct {
	dir      string         // folder of the database; set before the first event
	log      *slog.Logger   // nil: no log
	listener event.Listener // nil: no listener

	mu      sync.Mutex    // guards the fields below; taken last, under any other lock
	queue   []queuedEvent // events to hand on
	idle    *sync.Cond    // signalled when handing ends
	handing bool          // a goroutine hands events on
	deaf    bool          // the listener has panicked; belongs to the goroutine that hands on
	dropped uint64        // events that found no room

	Operations Operations // running operations, and counts of ended ones; has its own lock
}

// A queuedEvent is an event with the context of its call.
type queuedEvent struct {
	ctx context.Context
	e   *event.Event
}

// MaxQueuedEvents bounds the queue. Events below warnings get half of it.
const MaxQueuedEvents = 1024

// NewSender returns a Sender to a logger and a listener, each of which may be nil.
func NewSender(log *slog.Logger, listener event.Listener) *Sender {
	s := &Sender{log: log, listener: listener}
	s.idle = sync.NewCond(&s.mu)
	return s
}

// About sets the folder that events name, unless it is set. It must come before the first
// event, as nothing guards it.
func (s *Sender) About(dir string) {
	if s.dir == "" {
		s.dir = dir
	}
}

// Heard reports whether a logger or listener wants events of a level. Callers ask if making
// an event costs something.
func (s *Sender) Heard(ctx context.Context, level slog.Level) bool {
	return s != nil && (s.listener != nil || s.log != nil && s.log.Enabled(ctx, level))
}

// Tell queues an event, and fills in its folder, and its time if it has none. It does not
// wait, and may be called under any lock. If the queue is full the event is dropped and
// counted. ctx is handed on for its values. The Attrs of e must not be changed afterwards.
func (s *Sender) Tell(ctx context.Context, e event.Event) {
	if !s.Heard(ctx, e.Level) {
		return
	}
	e.Dir = s.dir
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	most := MaxQueuedEvents
	if e.Level < slog.LevelWarn { // a flood of these leaves room for warnings
		most /= 2
	}
	if len(s.queue) >= most {
		s.dropped++
		return
	}
	s.queue = append(s.queue, queuedEvent{ctx, &e})
	if !s.handing {
		s.handing = true
		go s.handOn()
	}
}

// Happened sends an event that belongs to no call.
func (s *Sender) Happened(name event.Name, level slog.Level, e event.Event) {
	e.Name, e.Level = name, level
	s.Tell(context.Background(), e)
}

// handOn hands on the queued events until there are none, and then ends. At any time at most
// one goroutine runs it, which handing says.
func (s *Sender) handOn() {
	ended := false
	defer func() {
		if !ended { // a listener or handler has ended the goroutine, as t.FailNow does
			go s.handOn()
		}
	}()
	for {
		s.mu.Lock()
		if len(s.queue) == 0 {
			s.queue, s.handing, ended = nil, false, true
			s.idle.Broadcast()
			s.mu.Unlock()
			return
		}
		q := s.queue[0]
		s.queue = s.queue[1:]
		s.mu.Unlock()
		s.deliver(q)
	}
}

// deliver logs an event and calls the listener with it. A listener that panics, or ends its
// goroutine, is not called again; an event in the log says so.
func (s *Sender) deliver(q queuedEvent) {
	s.write(q)
	if s.listener == nil || s.deaf {
		return
	}
	err := errListenerGone // replaced if the listener returns
	defer func() {
		if err == nil {
			return
		}
		s.deaf = true
		s.write(queuedEvent{q.ctx, &event.Event{
			Name: event.ListenerPanicked, Level: slog.LevelError, Time: time.Now(), Dir: s.dir, Err: err,
		}})
	}()
	err = work.Safely(func() error { s.listener(q.ctx, q.e); return nil })
}

var errListenerGone = errors.New("the listener has ended its goroutine")

// write logs an event with the time at which it happened. It calls the handler directly, as
// the methods of slog.Logger would log the time of now.
func (s *Sender) write(q queuedEvent) {
	if s.log == nil || !s.log.Enabled(q.ctx, q.e.Level) {
		return
	}
	// A panic of a handler cannot be reported to anyone.
	_ = work.Safely(func() error {
		r := slog.NewRecord(q.e.Time, q.e.Level, string(q.e.Name), 0)
		r.AddAttrs(q.e.Attributes()...)
		return s.log.Handler().Handle(q.ctx, r)
	})
}

// Wait waits until all events have been handed on, also those that come meanwhile. A listener
// must not call it.
func (s *Sender) Wait() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.handing {
		s.idle.Wait()
	}
}

// Lost returns the number of events that were dropped because the queue was full.
func (s *Sender) Lost() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dropped
}
