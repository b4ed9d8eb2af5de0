package cluster

import (
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
)

// outcomes hear from replicas what operations have come to.
type outcomes struct {
	subject string
	sub     *nats.Subscription

	mu      sync.Mutex
	waiting map[wire.ID]chan *wire.Outcome // each with room for one
}

func listen(nc *nats.Conn) (*outcomes, error) {
	o := &outcomes{subject: nc.NewInbox(), waiting: map[wire.ID]chan *wire.Outcome{}}
	var err error
	o.sub, err = nc.Subscribe(o.subject, func(m *nats.Msg) {
		got, err := wire.DecodeOutcome(m.Data)
		if err != nil {
			return
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		if c := o.waiting[got.ID]; c != nil {
			select {
			case c <- got:
			default: // another replica was first
			}
		}
	})
	return o, err
}

// wait returns where the outcome of an operation will be heard; forget ends that.
func (o *outcomes) wait(id wire.ID) <-chan *wire.Outcome {
	o.mu.Lock()
	defer o.mu.Unlock()
	c := make(chan *wire.Outcome, 1)
	o.waiting[id] = c
	return c
}

func (o *outcomes) forget(id wire.ID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.waiting, id)
}

func (o *outcomes) close() error { return o.sub.Unsubscribe() }
