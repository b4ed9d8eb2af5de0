package cluster

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/synadia-io/orbit.go/jetstreamext"

	"github.com/fddhdb/fddhdb/db/cluster/internal/journal"
	"github.com/fddhdb/fddhdb/db/cluster/internal/names"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
)

// objects are the objects of a cluster: data too large for a message.
type objects struct {
	js      jetstream.JetStream
	cluster names.Cluster
}

// make creates the store unless it exists.
func (o objects) make(ctx context.Context, servers int) error {
	_, err := o.js.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: o.cluster.Bucket(),
		Replicas: servers, Storage: jetstream.FileStorage})
	if err != nil && !errors.Is(err, jetstream.ErrBucketExists) {
		return fmt.Errorf("objects of cluster %s: %w", o.cluster, err)
	}
	return nil
}

// chunk is the message size of an object: half of the servers' limit, and twice as fast as the default.
const chunk = 512 << 10

// appears bounds the time until a stored object is on every server.
const appears = 3 * time.Second

// bucket returns the store of the objects.
func (o objects) bucket(ctx context.Context) (store jetstream.ObjectStore, err error) {
	err = again(ctx, func(ctx context.Context) (err error) {
		store, err = o.js.ObjectStore(ctx, o.cluster.Bucket())
		return err
	})
	return store, err
}

// fetch reads an object; the NATS client checks its checksum. It waits for elections until ctx ends. A
// missing object may only be missing on the server that was asked, so fetch retries for a while.
func (o objects) fetch(ctx context.Context, name string) ([]byte, error) {
	store, err := o.bucket(ctx)
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	for wait, most := 2*time.Millisecond, time.Second; ; wait, most = min(2*wait, time.Second), 2*most {
		try, cancel := context.WithTimeout(ctx, most) // a lost call gets no answer
		b, err := store.GetBytes(try, name)
		cancel()
		missing := errors.Is(err, jetstream.ErrObjectNotFound) || errors.Is(err, jetstream.ErrDigestMismatch)
		if err == nil || missing && time.Since(begin) > appears || !missing && !passes(err) {
			return b, err
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), err)
		case <-time.After(wait):
		}
	}
}

// remove removes unused objects. An object that stays takes space and does no other harm.
func (o objects) remove(ctx context.Context, names ...string) {
	store, err := o.bucket(ctx)
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
func (o objects) old(ctx context.Context, age time.Duration, most int,
	prefixes ...string) (map[string]object, error) {
	s, err := o.js.Stream(ctx, o.cluster.Objects())
	if err != nil {
		return nil, err
	}
	before := s.CachedInfo().TimeStamp.Add(-age)
	all := map[string]object{}
	for from := uint64(1); ; {
		some, err := jetstreamext.GetBatch(ctx, o.js, o.cluster.Objects(), listMost,
			jetstreamext.GetBatchSeq(from),
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
			if !info.Deleted && slices.ContainsFunc(prefixes,
				func(p string) bool { return strings.HasPrefix(info.Name, p) }) {
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

// put stores an object and reads it back, so that a message may name it. It waits for elections of the
// servers, until ctx ends. ObjectStore.Put cannot: it sends chunks again from a buffer that has been used
// since, and reports success.
func (o objects) put(ctx context.Context, name string, b []byte) error {
	store, err := o.bucket(ctx)
	for err == nil {
		var number string
		if number, err = o.write(ctx, store, name, b); err != nil {
			break
		}
		whole := false
		if whole, err = o.whole(ctx, number, b); whole {
			return nil
		}
	}
	return fmt.Errorf("object %s: %w", name, err)
}

// whole reports whether the servers have the chunks of an object and no others. The server that is asked may
// lag, so whole asks for a while.
func (o objects) whole(ctx context.Context, number string, b []byte) (bool, error) {
	from, begin := uint64(1), time.Now()
	for wait := 2 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		same, before := true, from
		err := again(ctx, func(ctx context.Context) error { // some of the chunks at a time
			some, err := jetstreamext.GetBatch(ctx, o.js, o.cluster.Objects(), listMost,
				jetstreamext.GetBatchSeq(from), jetstreamext.GetBatchMaxBytes(listBytes),
				jetstreamext.GetBatchSubject(o.cluster.ObjectChunks(number)))
			if err != nil {
				return err
			}
			for m, err := range some {
				if errors.Is(err, jetstreamext.ErrNoMessages) {
					break
				}
				if err != nil {
					return err
				}
				if same = len(m.Data) > 0 && bytes.HasPrefix(b, m.Data); !same {
					break
				}
				from, b = m.Sequence+1, b[len(m.Data):]
			}
			return nil
		})
		switch {
		case err != nil || !same:
			return false, err
		case from > before: // there may be more
			begin, wait = time.Now(), time.Millisecond
			continue
		case len(b) == 0:
			return true, nil
		case time.Since(begin) > appears:
			return false, nil
		}
		select {
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case <-time.After(wait):
		}
	}
}

// write writes an object, as ADR-20 of NATS says: its chunks one after the other, then its record, which
// replaces an earlier one of the name. Each message has an id, so a message that is sent again is stored
// once. It returns the number of the object.
func (o objects) write(ctx context.Context, store jetstream.ObjectStore, name string,
	b []byte) (number string, err error) {
	number = wire.NewID().String()
	send := func(m *nats.Msg, id int) error {
		_, _, err := journal.Send(ctx, o.js, m, o.cluster.Objects(), fmt.Sprint(number, "-", id), time.Time{})
		return err
	}
	var before *jetstream.ObjectInfo
	err = again(ctx, func(ctx context.Context) (err error) {
		if before, err = store.GetInfo(ctx, name); errors.Is(err, jetstream.ErrObjectNotFound) {
			before, err = nil, nil
		}
		return err
	})
	chunks := 0
	for part := range slices.Chunk(b, chunk) {
		if err != nil {
			break
		}
		m := nats.NewMsg(o.cluster.ObjectChunks(number))
		m.Data = part
		err = send(m, chunks)
		chunks++
	}
	if err == nil {
		m := nats.NewMsg(o.cluster.ObjectRecord(name))
		m.Header.Set(jetstream.MsgRollup, jetstream.MsgRollupSubject)
		sum := sha256.Sum256(b)
		m.Data, err = json.Marshal(jetstream.ObjectInfo{
			ObjectMeta: jetstream.ObjectMeta{Name: name,
				Opts: &jetstream.ObjectMetaOptions{ChunkSize: chunk}},
			Bucket: o.cluster.Bucket(), NUID: number, Size: uint64(len(b)), Chunks: uint32(chunks),
			Digest: "SHA-256=" + base64.URLEncoding.EncodeToString(sum[:]),
		})
		if err == nil {
			err = send(m, chunks)
		}
	}
	if err != nil { // without a record no sweep finds the chunks
		rest, cancel := context.WithTimeout(context.WithoutCancel(ctx), callFor)
		defer cancel()
		o.purge(rest, number)
		return "", err
	}
	if before != nil {
		o.purge(ctx, before.NUID)
	}
	return number, nil
}

// purge removes the chunks of an object. What stays takes space and does no other harm.
func (o objects) purge(ctx context.Context, number string) {
	if s, err := o.js.Stream(ctx, o.cluster.Objects()); err == nil {
		_ = s.Purge(ctx, jetstream.WithPurgeSubject(o.cluster.ObjectChunks(number)))
	}
}

// The name of an object begins with its kind.
const (
	changesObject = "op-"     // changes too large for a message; the message names the object
	modelObject   = "model-"  // the file of a model; a message names the object
	trainObject   = "train-"  // a part of a training, which removes it
	exportObject  = "export-" // a model for a client, which fetches and then removes it
)

// lateAfter bounds the time from the start of storing an object to appending the message that names it; then
// the client gives up. So if no log names an object older than settled, no log ever will. The client measures
// lateAfter and the servers measure the age of objects, each with its own clock; the clocks need not agree.
const lateAfter = time.Hour

var settled = 3 * time.Hour // a variable for tests

// The servers tell the age of objects, and their clocks may jump. So a sweep removes an object only if an
// earlier sweep of this node found it, too, longer than lateAfter ago by the monotonic clock.
var between = 2 * lateAfter // a variable for tests

// A sweeper remembers the findings of earlier sweeps of a node. It is in memory alone, so it is empty after a
// start.
type sweeper struct {
	mu    sync.Mutex
	found map[found]time.Time // when it was first found
}

// A found is an object that no log names. The same name stored again is another object.
type found struct {
	name string
	seq  uint64
}

// ripe returns the objects that an earlier sweep found long enough ago, and notes the others.
func (s *sweeper) ripe(all map[string]object) map[string]object {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, noted, ripe := time.Now(), map[found]time.Time{}, map[string]object{}
	for name, o := range all {
		is := found{name, o.seq}
		first, known := s.found[is]
		if !known {
			first = now
		}
		noted[is] = first
		if known && now.Sub(first) >= between {
			ripe[name] = o
		}
	}
	s.found = noted
	return ripe
}

// abandoned is the age of an object whose owner was killed before removing it: no owner needs one for so
// long.
var abandoned = 48 * time.Hour // a variable for tests

// mostSwept bounds the objects of one sweep, and so its memory: the oldest come first.
const mostSwept = 100_000

// sweep removes the objects that no log of the cluster names: their messages have been trimmed behind
// backups, or never came. It reads all logs. If it cannot read a message, it removes no such object, because
// the message may name any. It also removes abandoned objects.
func (n *Node) sweep(ctx context.Context, shards int) (removed int, err error) {
	store := objects{n.js, n.cluster}
	erase := func(all map[string]object) error {
		for _, x := range all {
			if err := store.erase(ctx, x); err != nil {
				return err
			}
			removed++
		}
		return nil
	}
	gone, err := store.old(ctx, abandoned, mostSwept, trainObject, exportObject)
	if err != nil {
		return 0, err
	}
	left, err := store.old(ctx, settled, mostSwept, changesObject, modelObject)
	if err != nil {
		return 0, err
	}
	// after the objects: a message appended from now on names another object
	for shard := range shards {
		err := journal.New(n.js, n.cluster, shard).All(ctx, func(some []journal.Read) error {
			for _, m := range some {
				op, err := wire.DecodeOp(m.Data)
				if err != nil {
					return fmt.Errorf("message %d: %w", m.Seq, err)
				}
				delete(left, op.Object)
			}
			return nil
		})
		if err != nil {
			return removed, err
		}
	}
	maps.Copy(left, gone)
	return removed, erase(n.sweeps.ripe(left))
}
