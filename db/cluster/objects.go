package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/synadia-io/orbit.go/jetstreamext"

	"github.com/fddhdb/fddhdb/db/cluster/internal/names"
)

// objects are the objects of a cluster: data too large for a message.
type objects struct {
	js      jetstream.JetStream
	cluster names.Cluster
}

// make creates the store unless it exists.
func (o objects) make(ctx context.Context, servers int) error {
	_, err := o.js.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: o.cluster.Bucket(), Replicas: servers, Storage: jetstream.FileStorage})
	if err != nil && !errors.Is(err, jetstream.ErrBucketExists) {
		return fmt.Errorf("objects of cluster %s: %w", o.cluster, err)
	}
	return nil
}

// chunk is the message size of an object: half of the servers' limit, and twice as fast as the default.
const chunk = 512 << 10

// appears bounds the time until a stored object is on every server.
const appears = 3 * time.Second

// fetch reads an object; the NATS client checks its checksum. A missing object may only be missing on the
// server that was asked, so fetch retries for a while.
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

// remove removes unused objects. An object that stays takes space and does no other harm.
func (o objects) remove(ctx context.Context, names ...string) {
	store, err := o.js.ObjectStore(ctx, o.cluster.Bucket())
	if err != nil {
		return
	}
	for _, name := range names {
		_ = store.Delete(ctx, name)
	}
}

// An object is the store's record of one object.
type object struct {
	name, nuid string
	subject    string // of the record
	seq        uint64 // of the record
}

// old returns objects with one of these prefixes that are older than age by the clock of the servers: the
// oldest ones, at most most of them.
func (o objects) old(ctx context.Context, age time.Duration, most int, prefixes ...string) (map[string]object, error) {
	s, err := o.js.Stream(ctx, o.cluster.Objects())
	if err != nil {
		return nil, err
	}
	before := s.CachedInfo().TimeStamp.Add(-age)
	all := map[string]object{}
	for from := uint64(1); ; {
		some, err := jetstreamext.GetBatch(ctx, o.js, o.cluster.Objects(), listMost, jetstreamext.GetBatchSeq(from),
			jetstreamext.GetBatchSubject(o.cluster.ObjectMeta()), jetstreamext.GetBatchMaxBytes(listBytes))
		if err != nil {
			return nil, err
		}
		n := 0
		for m, err := range some {
			if errors.Is(err, jetstreamext.ErrNoMessages) {
				break
			}
			if err != nil {
				return nil, err
			}
			if !m.Time.Before(before) || len(all) == most {
				return all, nil // all later objects are younger
			}
			n++
			from = m.Sequence + 1
			var info jetstream.ObjectInfo
			if err := json.Unmarshal(m.Data, &info); err != nil {
				return nil, err
			}
			if !info.Deleted && slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(info.Name, p) }) {
				all[info.Name] = object{info.Name, info.NUID, m.Subject, m.Sequence}
			}
		}
		if n == 0 {
			return all, nil
		}
	}
}

// Bounds of one read of old.
const (
	listMost  = 1000
	listBytes = 4 << 20
)

// erase removes an object found by old, without a trace. If the object has been stored again meanwhile, the
// new one stays. The record goes last: after an interruption old finds the object again.
func (o objects) erase(ctx context.Context, x object) error {
	s, err := o.js.Stream(ctx, o.cluster.Objects())
	if err == nil {
		err = s.Purge(ctx, jetstream.WithPurgeSubject(o.cluster.ObjectChunks(x.nuid)))
	}
	if err == nil {
		err = s.Purge(ctx, jetstream.WithPurgeSubject(x.subject), jetstream.WithPurgeSequence(x.seq+1))
	}
	if err != nil {
		return fmt.Errorf("object %s: %w", x.name, err)
	}
	return nil
}

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
