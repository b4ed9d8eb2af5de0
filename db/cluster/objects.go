package cluster

import (
	"context"
	"errors"
	"fmt"

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

// fetch reads an object, whose checksum the client of NATS compares.
func (o objects) fetch(ctx context.Context, name string) ([]byte, error) {
	store, err := o.js.ObjectStore(ctx, o.cluster.Bucket())
	if err != nil {
		return nil, err
	}
	return store.GetBytes(ctx, name)
}

// put stores an object.
func (o objects) put(ctx context.Context, name string, b []byte) error {
	store, err := o.js.ObjectStore(ctx, o.cluster.Bucket())
	if err == nil {
		_, err = store.PutBytes(ctx, name, b)
	}
	if err != nil {
		return fmt.Errorf("object %s: %w", name, err)
	}
	return nil
}
