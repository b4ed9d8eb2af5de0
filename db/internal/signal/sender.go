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

// A Sender tells the program that embeds the database what goes on in it. Events are put
// into a queue, under any lock, and a goroutine that is there while there are some hands
// them on: neither a listener nor a logger ever holds up the database.
// The zero value, and nil, tell nobody. Safe for concurrent use.
type Sender struct {
	dir      string // set before the first event
	log      *slog.Logger
	listener event.Listener
	Tracer   event.Tracer // makes spans; nil: nobody asks

	mu      sync.Mutex // taken last, under any other lock
	queue   []queuedEvent
	idle    *sync.Cond // that nobody hands on anything
	handing bool
	deaf    bool // the listener has panicked; of who hands on
	dropped uint64

	Operations Operations // that go on, and counts of those that have ended
}

type queuedEvent struct {
	ctx context.Context
	e   *event.Event
}

// MaxQueuedEvents bounds what waits for a listener; below warnings it is half of that.
const MaxQueuedEvents = 1024

// NewSender returns a Sender to a logger, a listener and a tracer, each of which may be nil.
func NewSender(log *slog.Logger, listener event.Listener, tracer event.Tracer) *Sender {
	s := &Sender{log: log, listener: listener, Tracer: tracer}
	s.idle = sync.NewCond(&s.mu)
	return s
}

// About says which database it is, unless that is known.
func (s *Sender) About(dir string) {
	if s.dir == "" {
		s.dir = dir
	}
}

// Heard reports whether anybody wants events of a level.
func (s *Sender) Heard(ctx context.Context, level slog.Level) bool {
	return s != nil && (s.listener != nil || s.log != nil && s.log.Enabled(ctx, level))
}

// Tell passes an event on. It does not wait.
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
	if e.Level < slog.LevelWarn { // a flood of these leaves room for what matters
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

// Happened tells of something that comes from no call.
func (s *Sender) Happened(name event.Name, level slog.Level, e event.Event) {
	e.Name, e.Level = name, level
	s.Tell(context.Background(), e)
}

// handOn hands on what there is.
func (s *Sender) handOn() {
	ended := false
	defer func() {
		if !ended { // a listener or a handler has ended the goroutine, as t.FailNow does
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

func (s *Sender) deliver(q queuedEvent) {
	s.write(q)
	if s.listener == nil || s.deaf {
		return
	}
	err := errListenerGone // unless it returns
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

// write logs an event, with the time at which it happened.
func (s *Sender) write(q queuedEvent) {
	if s.log == nil || !s.log.Enabled(q.ctx, q.e.Level) {
		return
	}
	// A handler that panics has nobody to tell.
	_ = work.Safely(func() error {
		r := slog.NewRecord(q.e.Time, q.e.Level, string(q.e.Name), 0)
		r.AddAttrs(q.e.Attributes()...)
		return s.log.Handler().Handle(q.ctx, r)
	})
}

// Wait waits until everything has been handed on.
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

// Lost returns how many events were dropped.
func (s *Sender) Lost() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dropped
}
