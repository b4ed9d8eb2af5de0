package signal

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/internal/work"
)

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
	Tracer   event.Tracer   // makes spans, in the goroutine of the call; nil: there are none

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

// NewSender returns a Sender to a logger, a listener and a tracer, each of which may be
// nil.
func NewSender(log *slog.Logger, listener event.Listener, tracer event.Tracer) *Sender {
	s := &Sender{log: log, listener: listener, Tracer: tracer}
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
