// Package plan keeps the plan of a cluster, its shards and their nodes, in a bucket of JetStream's key-value
// store.
//
// Every change names the revision that it is based on, so of two concurrent changes one is refused.
package plan

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/synadia-io/orbit.go/jetstreamext"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/names"
	"github.com/fddhdb/fddhdb/db/cluster/internal/retry"
)

// version is the version of the stored settings.
const version = 0

// Settings are fixed when a cluster is created.
type Settings struct {
	Version int `json:"version"`
	// random, so that no cluster takes another one's backups for its own
	ID       string    `json:"id"`
	Shards   int       `json:"shards"`   // they have the numbers from 0 on
	Replicas int       `json:"replicas"` // of each shard, at creation
	Servers  int       `json:"servers"`  // NATS servers that keep each log
	Made     time.Time `json:"made"`
}

const (
	settingsKey = "settings"
	shardPrefix = "shard."
)

func shardKey(shard int) string { return shardPrefix + strconv.Itoa(shard) }

// A Placement has the nodes of a shard, and its start.
type Placement struct {
	Nodes []string `json:"nodes"`

	// Base, if not empty, is the id of the backup that the shard started from, when the log was at Origin: it
	// stands for the messages up to Origin, regardless of its own position.
	Base   string `json:"base,omitempty"`
	Origin uint64 `json:"origin,omitempty"`
}

// A Plan follows the bucket. Its methods may be called from any goroutine.
type Plan struct {
	js       jetstream.JetStream
	kv       jetstream.KeyValue
	bucket   string
	told     string             // names.Cluster.Changed
	hears    *nats.Subscription // to told
	Settings Settings
	refresh  chan struct{} // has a token if follow should read the bucket soon

	mu      sync.Mutex
	placed  []Placement   // by shard
	changed chan struct{} // closed when placed changes
	stop    context.CancelFunc
	done    chan struct{}
}

// Make makes the bucket of a cluster, with its settings and the placement of each shard. An existing cluster
// is db.ErrExists.
func Make(ctx context.Context, js jetstream.JetStream, cluster names.Cluster, s Settings,
	placed []Placement) error {
	var kv jetstream.KeyValue
	if err := retry.Do(ctx, func(ctx context.Context) (err error) {
		kv, err = bucket(ctx, js, cluster, s.Servers)
		return err
	}); err != nil {
		return err
	}
	for i, p := range placed {
		b, err := json.Marshal(p)
		if err != nil {
			return err
		}
		if err := retry.Do(ctx, func(ctx context.Context) error {
			_, err := kv.Put(ctx, shardKey(i), b)
			return err
		}); err != nil {
			return fmt.Errorf("placement of shard %d: %w", i, err)
		}
	}
	s.Version = version
	b, err := json.Marshal(s)
	if err != nil {
		return err
	}
	// The settings go last: they make the cluster exist. Of two concurrent calls one succeeds.
	err = retry.Do(ctx, func(ctx context.Context) error {
		_, err := kv.Create(ctx, settingsKey, b)
		if !errors.Is(err, jetstream.ErrKeyExists) {
			return err
		}
		if e, gerr := kv.Get(ctx, settingsKey); gerr != nil {
			return gerr
		} else if bytes.Equal(e.Value(), b) { // from a try whose answer was lost
			return nil
		}
		return err
	})
	if errors.Is(err, jetstream.ErrKeyExists) {
		return fmt.Errorf("%w: cluster %s: somebody else has just created it", db.ErrExists, cluster)
	} else if err != nil {
		return fmt.Errorf("settings of cluster %s: %w", cluster, err)
	}
	return nil
}

// bucket makes the bucket of a cluster, or returns one that an interrupted Make has left.
func bucket(ctx context.Context, js jetstream.JetStream, cluster names.Cluster,
	servers int) (jetstream.KeyValue, error) {
	kv, err := js.CreateKeyValue(ctx, jetstream.KeyValueConfig{
		Bucket: cluster.Bucket(), Replicas: servers, Storage: jetstream.FileStorage, History: 5,
		LimitMarkerTTL: time.Minute, // leases expire
	})
	if errors.Is(err, jetstream.ErrBucketExists) { // with other settings
		kv, err = js.KeyValue(ctx, cluster.Bucket())
	}
	if err != nil {
		return nil, fmt.Errorf("bucket of cluster %s: %w", cluster, err)
	}
	// JetStream does not tell whether it has made the bucket, or has found one with these settings.
	switch _, err := kv.Get(ctx, settingsKey); {
	case err == nil:
		return nil, fmt.Errorf("%w: cluster %s", db.ErrExists, cluster)
	case !errors.Is(err, jetstream.ErrKeyNotFound):
		return nil, fmt.Errorf("settings of cluster %s: %w", cluster, err)
	}
	return kv, nil
}

// Open reads the plan of a cluster and follows it until Close. An unknown cluster is db.ErrNotFound.
func Open(ctx context.Context, js jetstream.JetStream, cluster names.Cluster) (*Plan, error) {
	kv, err := js.KeyValue(ctx, cluster.Bucket())
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		return nil, fmt.Errorf("%w: cluster %s: create it first", db.ErrNotFound, cluster)
	} else if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", cluster, err)
	}
	p := &Plan{
		js: js, kv: kv, bucket: cluster.Bucket(), told: cluster.Changed(), changed: make(chan struct{}),
		refresh: make(chan struct{}, 1), done: make(chan struct{}),
	}
	e, err := kv.Get(ctx, settingsKey)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, fmt.Errorf("%w: cluster %s: create it first", db.ErrNotFound, cluster)
	} else if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", cluster, err)
	}
	if err := json.Unmarshal(e.Value(), &p.Settings); err != nil {
		return nil, fmt.Errorf("settings of cluster %s: %w", cluster, err)
	}
	if s := p.Settings; s.Version > version {
		return nil, fmt.Errorf("%w: cluster %s is of version %d, this program knows %d", db.ErrFormat,
			cluster, s.Version, version)
	} else if s.Shards < 1 {
		return nil, fmt.Errorf("settings of cluster %s: %d shards", cluster, s.Shards)
	}
	if err := p.Look(ctx); err != nil {
		return nil, fmt.Errorf("cluster %s: %w", cluster, err)
	}
	if p.hears, err = js.Conn().Subscribe(p.told, func(*nats.Msg) { p.Refresh() }); err != nil {
		return nil, fmt.Errorf("cluster %s: %w", cluster, err)
	}
	var following context.Context
	following, p.stop = context.WithCancel(context.WithoutCancel(ctx))
	go p.follow(following)
	return p, nil
}

// every is how often a Plan reads the bucket without a message that it has changed. That is one request. It
// needs no state on a server for a reader, which could be lost with the server.
const every = 20 * time.Second

// Refresh has the bucket read soon: a node has said that it lacks a shard of the plan.
func (p *Plan) Refresh() {
	select {
	case p.refresh <- struct{}{}:
	default:
	}
}

// follow keeps the plan in step with the bucket.
func (p *Plan) follow(ctx context.Context) {
	defer close(p.done)
	connected := p.js.Conn().StatusChanged(nats.CONNECTED)
	defer p.js.Conn().RemoveStatusListener(connected)
	for {
		select {
		case <-ctx.Done():
			return
		case <-connected:
		case <-p.refresh:
		case <-time.After(every):
		}
		_ = p.Look(ctx) // on an error the plan stays as it is
		select {
		case <-ctx.Done():
			return
		case <-time.After(100 * time.Millisecond): // however many ask
		}
	}
}

// ErrIncomplete says that a server has not told the nodes of all shards. It may lag.
var ErrIncomplete = errors.New("a server does not tell which nodes have a shard")

// Look reads the present placements.
func (p *Plan) Look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	prefix := "$KV." + p.bucket + "." + shardPrefix
	all, err := jetstreamext.GetLastMsgsFor(ctx, p.js, "KV_"+p.bucket, []string{prefix + "*"})
	if err != nil {
		return err
	}
	placed := make([]Placement, p.Settings.Shards)
	for m, err := range all {
		if err != nil {
			return err
		}
		shard, err := strconv.Atoi(strings.TrimPrefix(m.Subject, prefix))
		if err != nil || shard < 0 || shard >= len(placed) || json.Unmarshal(m.Data, &placed[shard]) != nil {
			return fmt.Errorf("key %s: %.80q is no placement", m.Subject, m.Data)
		}
	}
	for shard := range placed {
		if placed[shard].Nodes == nil {
			return fmt.Errorf("%w: shard %d", ErrIncomplete, shard)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !reflect.DeepEqual(p.placed, placed) {
		p.placed = placed
		close(p.changed)
		p.changed = make(chan struct{})
	}
	return nil
}

// Nodes returns the nodes that have a shard. Do not change the slice.
func (p *Plan) Nodes(shard int) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if shard < 0 || shard >= len(p.placed) {
		return nil
	}
	return p.placed[shard].Nodes
}

// Placement returns the placement of a shard.
func (p *Plan) Placement(shard int) Placement {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.placed[shard]
}

// All returns all nodes that have shards, in order.
func (p *Plan) All() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := map[string]bool{}
	for _, is := range p.placed {
		for _, n := range is.Nodes {
			all[n] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// Of returns the shards of a node, in order, and a channel that is closed when they may have changed.
func (p *Plan) Of(node string) (shards []int, changed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for s, is := range p.placed {
		if slices.Contains(is.Nodes, node) {
			shards = append(shards, s)
		}
	}
	return shards, p.changed
}

// Change changes the nodes of a shard: f gets the present nodes, and returns the new ones. After a concurrent
// change, or an election of the servers, f is called again, also with the nodes that it has returned before.
func (p *Plan) Change(ctx context.Context, shard int, f func(nodes []string) ([]string, error)) error {
	for {
		err := retry.Do(ctx, func(ctx context.Context) error { return p.change(ctx, shard, f) })
		if !errors.Is(err, jetstream.ErrKeyExists) {
			return err
		}
	}
}

func (p *Plan) change(ctx context.Context, shard int, f func(nodes []string) ([]string, error)) error {
	e, err := p.kv.Get(ctx, shardKey(shard))
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return fmt.Errorf("%w: shard %d has no place", db.ErrNotFound, shard)
	}
	if err != nil {
		return fmt.Errorf("shard %d: %w", shard, err)
	}
	var is Placement
	if err := json.Unmarshal(e.Value(), &is); err != nil {
		return fmt.Errorf("placement of shard %d: %w", shard, err)
	}
	if is.Nodes, err = f(is.Nodes); err != nil {
		return err
	}
	b, err := json.Marshal(is)
	if err != nil {
		return err
	}
	if _, err = p.kv.Update(ctx, e.Key(), b, e.Revision()); err != nil {
		return fmt.Errorf("placement of shard %d: %w", shard, err)
	}
	p.tell()
	return p.Look(ctx)
}

// tell tells all clients and nodes that the plan has changed. A client or node that misses the message reads
// the bucket within every.
func (p *Plan) tell() { _ = p.js.Conn().Publish(p.told, nil) }

// Close ends following.
func (p *Plan) Close() {
	_ = p.hears.Unsubscribe() // the connection may be closed
	p.stop()
	<-p.done
}
