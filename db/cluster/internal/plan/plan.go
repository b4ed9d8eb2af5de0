// Package plan keeps the plan of a cluster, its shards and their nodes, in a bucket of JetStream's key-value
// store.
//
// Every change names the revision that it is based on, so of two concurrent changes one is refused.
package plan

import (
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
)

// version is the version of the stored settings.
const version = 0

// Settings are fixed when a cluster is created.
type Settings struct {
	Version int `json:"version"`
	// random, so that no cluster takes another one's backups for its own
	ID string `json:"id"`
	// number of the first shard at creation: not 0 if made from backups of a cluster that had grown
	First    int       `json:"first,omitempty"`
	Shards   int       `json:"shards"`   // at creation, see Layout
	Replicas int       `json:"replicas"` // of each shard, at creation
	Servers  int       `json:"servers"`  // NATS servers that keep each log
	Made     time.Time `json:"made"`
}

const (
	settingsKey = "settings"
	layoutKey   = "layout" // absent as long as the cluster has its first layout
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

	// Split says that the shard is a part of another one, and Base a backup of that shard with the position
	// Origin. Closed says that the log of that shard was closed by then.
	Split  bool `json:"split,omitempty"`
	Closed bool `json:"closed,omitempty"`

	// Lease is the number of the latest Claim that made it or took it over.
	Lease uint64 `json:"lease,omitempty"`
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
	placed  map[int]Placement
	grown   Grown
	changed chan struct{} // closed when placed or grown changes
	stop    context.CancelFunc
	done    chan struct{}
}

// Make makes the bucket of a cluster, with its settings and the placement of each shard. An existing cluster
// is db.ErrExists.
func Make(ctx context.Context, js jetstream.JetStream, cluster names.Cluster, s Settings,
	placed []Placement) error {
	kv, err := js.CreateKeyValue(ctx, jetstream.KeyValueConfig{
		Bucket: cluster.Bucket(), Replicas: s.Servers, Storage: jetstream.FileStorage, History: 5,
		LimitMarkerTTL: marked,
	})
	if err != nil && !errors.Is(err, jetstream.ErrBucketExists) {
		return fmt.Errorf("bucket of cluster %s: %w", cluster, err)
	}
	if err != nil {
		if kv, err = js.KeyValue(ctx, cluster.Bucket()); err != nil {
			return fmt.Errorf("bucket of cluster %s: %w", cluster, err)
		}
		if _, err := kv.Get(ctx, settingsKey); err == nil {
			return fmt.Errorf("%w: cluster %s", db.ErrExists, cluster)
		}
	}
	for i, p := range placed {
		if err := put(ctx, kv, shardKey(s.Layout().Number(i)), p); err != nil {
			return err
		}
	}
	s.Version = version
	b, err := json.Marshal(s)
	if err != nil {
		return err
	}
	// The settings go last: they make the cluster exist. Of two concurrent calls one succeeds.
	if _, err := kv.Create(ctx, settingsKey, b); errors.Is(err, jetstream.ErrKeyExists) {
		return fmt.Errorf("%w: cluster %s: somebody else has just created it", db.ErrExists, cluster)
	} else if err != nil {
		return fmt.Errorf("key %s: %w", settingsKey, err)
	}
	return nil
}

func put(ctx context.Context, kv jetstream.KeyValue, key string, x any) error {
	b, err := json.Marshal(x)
	if err == nil {
		_, err = kv.Put(ctx, key, b)
	}
	if err != nil {
		return fmt.Errorf("key %s: %w", key, err)
	}
	return nil
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
		js: js, kv: kv, bucket: cluster.Bucket(), told: cluster.Changed(), placed: map[int]Placement{},
		changed: make(chan struct{}),
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
	} else if s.Shards < 1 || s.First < 0 {
		return nil, fmt.Errorf("settings of cluster %s: %d shards from %d on", cluster, s.Shards, s.First)
	}
	p.grown.Layout = p.Settings.Layout()
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

// Look reads the present placements and layout.
func (p *Plan) Look(ctx context.Context) error {
	_, err := p.look(ctx, "")
	return err
}

// Fresh is Look from a server that has the revision of a key, or a later one: any server answers, and may
// lag.
func (p *Plan) Fresh(ctx context.Context, key string, revision uint64) error {
	for {
		has, err := p.look(ctx, key)
		if err == nil && has >= revision {
			return nil
		}
		if err == nil {
			err = fmt.Errorf("key %s: revision %d is not there yet", key, revision)
		}
		if err := p.pause(ctx, err); err != nil {
			return err
		}
	}
}

// look is Look, and returns the revision of a key unless that is empty.
func (p *Plan) look(ctx context.Context, key string) (revision uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	bucket := "$KV." + p.bucket + "."
	prefix := bucket + shardPrefix
	subjects := []string{prefix + "*", bucket + layoutKey}
	if key != "" && key != layoutKey {
		subjects = append(subjects, bucket+key)
	}
	all, err := jetstreamext.GetLastMsgsFor(ctx, p.js, p.stream(), subjects)
	if err != nil {
		return 0, err
	}
	placed, grown := map[int]Placement{}, Grown{Layout: p.Settings.Layout()}
	for m, err := range all {
		if errors.Is(err, jetstreamext.ErrBatchUnsupported) { // the library's name for any refusal
			return 0, p.unreadable(ctx, err)
		}
		if err != nil {
			return 0, err
		}
		if key != "" && m.Subject == bucket+key {
			revision = m.Sequence
			if key != layoutKey {
				continue
			}
		}
		// a removed shard
		if m.Header.Get(jetstream.MarkerReasonHeader) != "" || m.Header.Get("KV-Operation") != "" {
			continue
		}
		if m.Subject == bucket+layoutKey {
			if err := json.Unmarshal(m.Data, &grown); err != nil || grown.Shards < 1 ||
				len(grown.Starts) != grown.Shards {
				return 0, fmt.Errorf("key %s: %.80q is no layout", m.Subject, m.Data)
			}
			continue
		}
		shard, err := strconv.Atoi(strings.TrimPrefix(m.Subject, prefix))
		var is Placement
		if err != nil || json.Unmarshal(m.Data, &is) != nil || shard < p.Settings.First {
			return 0, fmt.Errorf("key %s: %.80q is no placement", m.Subject, m.Data)
		}
		placed[shard] = is
	}
	for i := range grown.Shards {
		if _, has := placed[grown.Number(i)]; !has {
			return 0, fmt.Errorf("shard %d has no place", grown.Number(i))
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if grown.First < p.grown.First { // the server lags: a cluster only grows
		return 0, errors.New("the server has an older plan")
	}
	if !reflect.DeepEqual(p.placed, placed) || grown.First != p.grown.First {
		p.placed, p.grown = placed, grown
		close(p.changed)
		p.changed = make(chan struct{})
	}
	return revision, nil
}

func (p *Plan) stream() string { return "KV_" + p.bucket }

// mostKeys bounds the keys in an answer of the servers: a plan with more is unreadable. otherKeys of them are
// not of shards: the layout, and the key of Fresh.
const (
	mostKeys  = 1024
	otherKeys = 2
)

// keys returns the subjects of the shards in the bucket, including recently removed shards, whose markers are
// still there.
func (p *Plan) keys(ctx context.Context) (map[string]uint64, error) {
	s, err := p.js.Stream(ctx, p.stream())
	if err != nil {
		return nil, fmt.Errorf("bucket of the plan: %w", err)
	}
	info, err := s.Info(ctx, jetstream.WithSubjectFilter("$KV."+p.bucket+"."+shardPrefix+"*"))
	if err != nil {
		return nil, fmt.Errorf("bucket of the plan: %w", err)
	}
	return info.State.Subjects, nil
}

// unreadable returns the reason why servers refuse to answer with the plan.
func (p *Plan) unreadable(ctx context.Context, why error) error {
	keys, err := p.keys(ctx)
	if err != nil {
		return errors.Join(why, err)
	}
	if n := len(keys); n+otherKeys > mostKeys {
		return fmt.Errorf("the plan cannot be read: it has %d shards, counting those removed less than %v ago, and servers answer with %d keys at most: %w", n, 2*marked, mostKeys, ErrFull)
	}
	return why
}

// ErrFull says that the plan has no room for more shards.
var ErrFull = fmt.Errorf("%w: the plan has no room", db.ErrFull)

// Room refuses new shards for which the plan has no room: it would become unreadable.
func (p *Plan) Room(ctx context.Context, more []int) error {
	keys, err := p.keys(ctx)
	if err != nil {
		return err
	}
	n := len(keys)
	for _, shard := range more {
		if _, has := keys["$KV."+p.bucket+"."+shardKey(shard)]; !has {
			n++
		}
	}
	if n+otherKeys > mostKeys {
		return fmt.Errorf("%w: with %d more shards it would have %d, counting those removed less than %v ago, of %d: wait for so long, and call it again", ErrFull, len(more), n, 2*marked, mostKeys-otherKeys)
	}
	return nil
}

// Nodes returns the nodes that have a shard. Do not change the slice.
func (p *Plan) Nodes(shard int) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.placed[shard].Nodes
}

// Placement returns the placement of a shard.
func (p *Plan) Placement(shard int) Placement {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.placed[shard]
}

// Shards returns the numbers of all placed shards, in order. While a cluster grows they belong to two
// layouts.
func (p *Plan) Shards() []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.placed))
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
	slices.Sort(shards)
	return shards, p.changed
}

// Change changes the nodes of a shard: f gets the present nodes, and returns the new ones. After a concurrent
// change f is called again.
func (p *Plan) Change(ctx context.Context, shard int, f func(nodes []string) ([]string, error)) error {
	for {
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
		if _, err = p.kv.Update(ctx, e.Key(), b, e.Revision()); !errors.Is(err, jetstream.ErrKeyExists) {
			if err != nil {
				return fmt.Errorf("placement of shard %d: %w", shard, err)
			}
			p.tell()
			return p.Look(ctx)
		}
	}
}

// tell tells all clients and nodes that the plan has changed. A client or node that misses the message reads
// the bucket within every.
func (p *Plan) tell() { _ = p.js.Conn().Publish(p.told, nil) }

// pause waits a moment before the next try; why is the error if the context ends.
func (p *Plan) pause(ctx context.Context, why error) error {
	select {
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", context.Cause(ctx), why)
	case <-time.After(20 * time.Millisecond):
		return nil
	}
}

// Close ends following.
func (p *Plan) Close() {
	_ = p.hears.Unsubscribe() // the connection may be closed
	p.stop()
	<-p.done
}
