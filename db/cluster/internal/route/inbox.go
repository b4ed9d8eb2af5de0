package route

import (
	"strconv"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
)

// An inbox receives the answers to all requests of a router with one subscription. A request has a number,
// the last token of its reply subject. So a caller needs no goroutine for each node, as requests of package
// nats do.
type inbox struct {
	prefix string
	sub    *nats.Subscription

	mu      sync.Mutex
	last    uint64
	waiting map[uint64]expected
}

// An expected is the waiter and the try of a number.
type expected struct {
	by *waiter
	of *try
}

// A waiter collects answers until its owner takes them; none is dropped.
type waiter struct {
	inbox   *inbox
	came    []message     // guarded by inbox.mu
	signal  chan struct{} // has one token, or none
	numbers []uint64      // numbers of all its requests
}

// A message is an answer: of NATS, or of a node in this program.
type message struct {
	of     *try
	m      *nats.Msg
	answer *wire.Answer
}

func openInbox(nc *nats.Conn) (*inbox, error) {
	b := &inbox{prefix: nc.NewInbox() + ".", waiting: map[uint64]expected{}}
	var err error
	b.sub, err = nc.Subscribe(b.prefix+"*", func(m *nats.Msg) {
		number, err := strconv.ParseUint(strings.TrimPrefix(m.Subject, b.prefix), 10, 64)
		if err == nil {
			b.put(number, message{m: m})
		}
	})
	if err != nil {
		return nil, err
	}
	return b, b.sub.SetPendingLimits(-1, -1) // no limits: each answer has a waiter
}

// put delivers an answer if a waiter still expects it.
func (b *inbox) put(number uint64, l message) {
	b.mu.Lock()
	e, is := b.waiting[number]
	if is {
		delete(b.waiting, number)
		l.of = e.of
		e.by.came = append(e.by.came, l)
	}
	b.mu.Unlock()
	if is {
		select {
		case e.by.signal <- struct{}{}:
		default:
		}
	}
}

// waiter returns a waiter without requests.
func (b *inbox) waiter() *waiter { return &waiter{inbox: b, signal: make(chan struct{}, 1)} }

// expect returns a number for a new request.
func (w *waiter) expect(of *try) uint64 {
	b := w.inbox
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last++
	b.waiting[b.last] = expected{w, of}
	w.numbers = append(w.numbers, b.last)
	return b.last
}

// take returns the answers since the last call.
func (w *waiter) take() []message {
	w.inbox.mu.Lock()
	defer w.inbox.mu.Unlock()
	came := w.came
	w.came = nil
	return came
}

// forget drops all answers, also those still to come.
func (w *waiter) forget() {
	w.inbox.mu.Lock()
	defer w.inbox.mu.Unlock()
	for _, n := range w.numbers {
		delete(w.inbox.waiting, n)
	}
	w.numbers, w.came = nil, nil
}

// subject returns the reply subject for a number.
func (b *inbox) subject(number uint64) string {
	text := make([]byte, 0, 64)
	return string(strconv.AppendUint(append(text, b.prefix...), number, 10))
}
