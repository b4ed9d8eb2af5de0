package cluster

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
)

// A lease is the right to do something that one at a time may do. It ends by itself when its holder is
// silent. A holder that is stopped and goes on later may think that it still has it: so what is done under
// a lease carries its number, and replicas refuse a number that is less than one they have seen.
type lease struct {
	js      jetstream.JetStream
	subject string
	name    string
	number  uint64 // of the bucket, when it was taken
	stop    context.CancelFunc
	ctx     context.Context // ends when the lease does
	done    chan struct{}
	at      uint64 // revision of the key, as it was last renewed; read by end once done is closed
}

const (
	leaseFor   = 20 * time.Second // after its holder has been heard of last
	leaseEvery = 4 * time.Second  // how often it is heard of
)

// take takes a lease. If somebody else has it that is db.ErrBusy.
func (c *Client) take(ctx context.Context, name string) (*lease, error) {
	var number uint64
	own := fmt.Appendf(nil, "%s %s", time.Now().UTC().Format(time.RFC3339), wire.NewID())
	err := again(ctx, func(ctx context.Context) error {
		kv, err := c.js.KeyValue(ctx, c.cluster.Bucket())
		if err != nil {
			return err
		}
		number, err = kv.Create(ctx, name, own, jetstream.KeyTTL(leaseFor))
		if !errors.Is(err, jetstream.ErrKeyExists) {
			return err
		}
		if e, gerr := kv.Get(ctx, name); gerr == nil && bytes.Equal(e.Value(), own) { // of a try whose answer was lost
			number, err = e.Revision(), nil
		}
		return err
	})
	if errors.Is(err, jetstream.ErrKeyExists) {
		return nil, fmt.Errorf("%w: %s is going on, or has ended less than %v ago", db.ErrBusy, name, leaseFor)
	} else if err != nil {
		return nil, err
	}
	l := &lease{js: c.js, subject: "$KV." + c.cluster.Bucket() + "." + name, name: name, number: number, at: number, done: make(chan struct{})}
	l.ctx, l.stop = context.WithCancel(ctx)
	go l.keep()
	return l, nil
}

// keep renews the lease until it ends. If it cannot, the context ends before anybody else may have it.
func (l *lease) keep() {
	defer close(l.done)
	defer l.stop()
	for heard := time.Now(); ; {
		select {
		case <-l.ctx.Done():
			return
		case <-time.After(leaseEvery):
		}
		begin := time.Now()
		ctx, cancel := context.WithTimeout(l.ctx, leaseEvery)
		ack, err := l.js.PublishMsg(ctx, &nats.Msg{Subject: l.subject, Data: []byte(begin.UTC().Format(time.RFC3339))},
			jetstream.WithMsgTTL(leaseFor), jetstream.WithExpectLastSequencePerSubject(l.at))
		cancel()
		var refused *jetstream.APIError
		switch {
		case err == nil:
			l.at, heard = ack.Sequence, begin
		case errors.As(err, &refused) && refused.Code == 400: // it is somebody else's
			return
		case time.Since(heard) > leaseFor-2*leaseEvery:
			return
		}
	}
}

// end gives the lease back.
func (l *lease) end(c *Client) {
	l.stop()
	<-l.done
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if kv, err := c.js.KeyValue(ctx, c.cluster.Bucket()); err == nil {
		_ = kv.Purge(ctx, l.name, jetstream.LastRevision(l.at)) // else it ends by itself, or is somebody else's
	}
}

// wireName is a name as a part of a key of a bucket, which takes few characters.
func wireName(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:8])
}
