package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/fddhdb/fddhdb/db/cluster/internal/names"
)

// objects are the objects of a cluster: what is too large for a message.
type objects struct {
	js      jetstream.JetStream
	cluster names.Cluster
}

// make makes the store, where it is not there.
func (o objects) make(ctx context.Context, servers int) error {
	_, err := o.js.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: o.cluster.Bucket(), Replicas: servers, Storage: jetstream.FileStorage})
	if err != nil && !errors.Is(err, jetstream.ErrBucketExists) {
		return fmt.Errorf("objects of cluster %s: %w", o.cluster, err)
	}
	return nil
}

// chunk is the size of the messages of an object: half of what a server takes, twice as fast as the default.
const chunk = 512 << 10

// appears is how long an object may take to be there on every server once it has been stored.
const appears = 3 * time.Second

// fetch reads an object, whose checksum the client of NATS compares. One that is not there may only not be
// on the server that was asked: it is asked for again, for a while.
func (o objects) fetch(ctx context.Context, name string) ([]byte, error) {
	store, err := o.js.ObjectStore(ctx, o.cluster.Bucket())
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	for wait := 2 * time.Millisecond; ; wait *= 2 {
		b, err := store.GetBytes(ctx, name)
		if !errors.Is(err, jetstream.ErrObjectNotFound) || time.Since(begin) > appears {
			return b, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(wait):
		}
	}
}

// remove removes objects that nobody needs any more. One that stays takes space, and does no other harm.
func (o objects) remove(ctx context.Context, names ...string) {
	store, err := o.js.ObjectStore(ctx, o.cluster.Bucket())
	if err != nil {
		return
	}
	for _, name := range names {
		_ = store.Delete(ctx, name)
	}
}

// put stores an object.
func (o objects) put(ctx context.Context, name string, b []byte) error {
	store, err := o.js.ObjectStore(ctx, o.cluster.Bucket())
	if err == nil {
		_, err = store.Put(ctx, jetstream.ObjectMeta{Name: name, Opts: &jetstream.ObjectMetaOptions{ChunkSize: chunk}}, bytes.NewReader(b))
	}
	if err != nil {
		return fmt.Errorf("object %s: %w", name, err)
	}
	return nil
}
