package db

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/internal/work"
)

// signals tell the program that embeds the database what goes on in it. Events are put
// into a queue, by whoever holds whatever locks, and a goroutine that is there while there
// are some hands them on: neither a listener nor a logger ever holds up the database.
// The zero value, and nil, tell nobody. Safe for concurrent use.
type signals struct {
	dir      string // before the first event
	log      *slog.Logger
	listener event.Listener
	tracer   event.Tracer

	mu      sync.Mutex // taken last, under any other lock
	queue   []queuedEvent
	idle    *sync.Cond // that nobody hands on anything
	handing bool
	deaf    bool // the listener has panicked; of who hands on
	dropped uint64

	operations operations
}

type queuedEvent struct {
	ctx context.Context
	e   *event.Event
}

// maxQueuedEvents bounds what waits for a listener; below warnings it is half of that.
const maxQueuedEvents = 1024

func newSignals(log *slog.Logger, listener event.Listener, tracer event.Tracer) *signals {
	s := &signals{log: log, listener: listener, tracer: tracer}
	s.idle = sync.NewCond(&s.mu)
	return s
}

// about says which database it is, unless that is known.
func (s *signals) about(dir string) {
	if s.dir == "" {
		s.dir = dir
	}
}

// heard reports whether anybody wants events of a level.
func (s *signals) heard(ctx context.Context, level slog.Level) bool {
	return s != nil && (s.listener != nil || s.log != nil && s.log.Enabled(ctx, level))
}

// tell passes an event on. It does not wait.
func (s *signals) tell(ctx context.Context, e event.Event) {
	if !s.heard(ctx, e.Level) {
		return
	}
	e.Dir = s.dir
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	most := maxQueuedEvents
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

// happened tells of something that comes from no call.
func (s *signals) happened(name event.Name, level slog.Level, e event.Event) {
	e.Name, e.Level = name, level
	s.tell(context.Background(), e)
}

// handOn hands on what there is.
func (s *signals) handOn() {
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

func (s *signals) deliver(q queuedEvent) {
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
func (s *signals) write(q queuedEvent) {
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

// wait waits until everything has been handed on.
func (s *signals) wait() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.handing {
		s.idle.Wait()
	}
}

// lost returns how many events were dropped.
func (s *signals) lost() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dropped
}
