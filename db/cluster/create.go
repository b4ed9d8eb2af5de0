package cluster

import (
	"bytes"
	"cmp"
	"context"
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

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/backup"
	"github.com/fddhdb/fddhdb/db/cluster/internal/journal"
	"github.com/fddhdb/fddhdb/db/cluster/internal/names"
	"github.com/fddhdb/fddhdb/db/cluster/internal/plan"
	"github.com/fddhdb/fddhdb/db/cluster/internal/vault"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
)

// CreateOptions are the options of Create.
type CreateOptions struct {
	Shards   int      // many more than nodes: adding nodes does not change it, only Grow doubles it
	Replicas int      // nodes that have each shard; 0 means 2
	Nodes    []string // nodes that get the shards; nil: the nodes that answer now

	// Servers is the number of NATS servers that keep each log; 0 means 3. With 1, losing that server loses
	// acknowledged writes.
	Servers int

	// From, if not empty, is a place of backups, see NodeOptions.Backups: each shard starts from its newest
	// backup there. The backups come from another cluster, whose logs are lost, or from fddhdb-beam. If that
	// cluster has grown, Create takes its latest growth for which every shard has a backup. Shards is 0 or
	// their number. The nodes must use this place for their backups, or at least be able to read it.
	From string

	// LogBytes bounds each log; 0 means 1 GiB. A full log takes no writes. The servers reserve as much for
	// each shard (max_file_store).
	LogBytes int64
}

// maxShards bounds the shards of a cluster. Each has a key in the plan, and servers list at most 1,024 of its
// keys in an answer.
const maxShards = 1000

// Create makes a cluster: its logs, its plan, and the placement of its shards. The nodes may be running, or
// are opened later. An existing cluster of that name is db.ErrExists. After an interruption call Create
// again.
func Create(ctx context.Context, nc *nats.Conn, cluster string, o CreateOptions) error {
	if err := names.Check("cluster", cluster); err != nil {
		return err
	}
	o.Replicas, o.Servers, o.LogBytes = cmp.Or(o.Replicas, 2), cmp.Or(o.Servers, 3), cmp.Or(o.LogBytes, 1<<30)
	layout := plan.Layout{Shards: o.Shards}
	if o.From != "" {
		var err error
		if layout.First, layout.Shards, err = vault.At(o.From).Generation(ctx, maxShards); err != nil {
			return err
		}
		if o.Shards != 0 && o.Shards != layout.Shards {
			return fmt.Errorf("%w: %d shards: %s has backups of %d", db.ErrInvalid, o.Shards, o.From,
				layout.Shards)
		}
		o.Shards = layout.Shards
	}
	if o.Shards < 1 || o.Shards > maxShards {
		return fmt.Errorf("%w: %d shards: 1 to %d are possible", db.ErrInvalid, o.Shards, maxShards)
	}
	if o.Nodes == nil {
		all, err := Nodes(ctx, nc, cluster, time.Second)
		if err != nil {
			return err
		}
		for _, n := range all {
			o.Nodes = append(o.Nodes, n.Node)
		}
	}
	for i, n := range o.Nodes {
		if err := names.Check("node", n); err != nil {
			return err
		}
		if slices.Contains(o.Nodes[:i], n) {
			return fmt.Errorf("%w: node %s twice", db.ErrInvalid, n)
		}
	}
	if o.Replicas < 1 || o.Replicas > len(o.Nodes) {
		return fmt.Errorf("%w: %d replicas on %d nodes: start more nodes, or name them", db.ErrInvalid,
			o.Replicas, len(o.Nodes))
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	c := names.Cluster(cluster)
	if p, err := plan.Open(ctx, js, c); err == nil {
		p.Close()
		return fmt.Errorf("%w: cluster %s", db.ErrExists, cluster)
	} else if !errors.Is(err, db.ErrNotFound) {
		return err
	}
	placed, err := begin(ctx, o.From, layout)
	if err != nil {
		return err
	}
	for shard := range o.Shards {
		log := journal.Config{Replicas: o.Servers, MaxBytes: o.LogBytes, FirstSeq: placed[shard].Origin + 1}
		if err := journal.New(js, c, layout.Number(shard)).Create(ctx, log); err != nil {
			return err
		}
	}
	if err := (objects{js, c}).make(ctx, o.Servers); err != nil {
		return err
	}
	for shard := range placed {
		for i := range o.Replicas {
			placed[shard].Nodes = append(placed[shard].Nodes, o.Nodes[(shard+i)%len(o.Nodes)])
		}
	}
	return plan.Make(ctx, js, c, plan.Settings{ID: wire.NewID().String(), First: layout.First,
		Shards: o.Shards, Replicas: o.Replicas, Servers: o.Servers, Made: time.Now().UTC()}, placed)
}

// begin returns the start of each shard: empty, or a backup.
func begin(ctx context.Context, place string, l plan.Layout) ([]plan.Placement, error) {
	placed := make([]plan.Placement, l.Shards)
	if place == "" {
		return placed, nil
	}
	from := vault.At(place)
	for i := range placed {
		shard := l.Number(i)
		e, err := from.Entry(ctx, shard)
		if err != nil {
			return nil, err
		}
		repository, err := from.Repository(ctx, shard)
		if err != nil {
			return nil, err
		}
		if _, err := backup.Find(ctx, repository, backup.Choice{ID: e.Backup}); err != nil {
			return nil, fmt.Errorf("shard %d: %w", shard, err)
		}
		placed[i].Base, placed[i].Origin = e.Backup, e.Position
	}
	return placed, nil
}

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

func (o objects) put(ctx context.Context, name string, b []byte) error {
	store, err := o.js.ObjectStore(ctx, o.cluster.Bucket())
	if err == nil {
		_, err = store.Put(ctx, jetstream.ObjectMeta{Name: name,
			Opts: &jetstream.ObjectMetaOptions{ChunkSize: chunk}}, bytes.NewReader(b))
	}
	if err != nil {
		return fmt.Errorf("object %s: %w", name, err)
	}
	return nil
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

// byNumber orders the names of streams by the number at their end.
func byNumber(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }

// sweep removes the objects that no log of the cluster names: their messages have been trimmed behind
// backups, or never came. It reads all logs, also of shards that are being split and of their parts. If it
// cannot read a message, it removes no such object, because the message may name any. It also removes
// abandoned objects.
func (n *Node) sweep(ctx context.Context, of plan.Layout) (removed int, err error) {
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
	logs, err := journal.Logs(ctx, n.js, n.cluster)
	if err != nil {
		return removed, err
	}
	for i := range of.Shards {
		if stream := n.cluster.Stream(of.Number(i)); logs[stream] == nil {
			return removed, fmt.Errorf("%w: log %s", db.ErrNotFound, stream)
		}
	}
	// Shards being split come before their parts: a message copied meanwhile is seen in one of them.
	for _, stream := range slices.SortedFunc(maps.Keys(logs), byNumber) {
		err := logs[stream].All(ctx, func(some []journal.Read) error {
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
