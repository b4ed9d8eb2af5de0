// Package plan is what a cluster has agreed on: which shards there are, and which nodes have them, in a
// bucket of JetStream's key-value store.
//
// Every change names what it has been made from, so that of two at a time one is refused.
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

// version is that of what is stored.
const version = 0

// Settings are what a cluster is made with, and do not change.
type Settings struct {
	Version  int       `json:"version"`
	ID       string    `json:"id"`              // at random, so that nobody takes the backups of another cluster for its own
	First    int       `json:"first,omitempty"` // number of the first shard, when it was made: not 0 where it was made from backups of one that had grown
	Shards   int       `json:"shards"`          // when it was made, see Layout
	Replicas int       `json:"replicas"`        // of each shard, when it was made
	Servers  int       `json:"servers"`         // of NATS that keep each log
	Made     time.Time `json:"made"`
}

// The keys of the bucket.
const (
	settingsKey = "settings"
	layoutKey   = "layout" // absent as long as the cluster has the layout that it was made with
	shardPrefix = "shard."
)

func shardKey(shard int) string { return shardPrefix + strconv.Itoa(shard) }

// A Placement says which nodes have a shard, and what it began with.
type Placement struct {
	Nodes []string `json:"nodes"`

	// Base, if not empty, is the id of the backup that the shard began with, when the log was at Origin: it
	// holds what the messages up to Origin would make, whatever position it has itself.
	Base   string `json:"base,omitempty"`
	Origin uint64 `json:"origin,omitempty"`

	// Split says that the shard is a part of another one, and Base a backup of that, which goes to Origin by
	// its own account. Closed says that the other one had been closed by then.
	Split  bool `json:"split,omitempty"`
	Closed bool `json:"closed,omitempty"`

	// Lease is the number of the latest Claim that has made it, or has taken it over.
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
	refresh  chan struct{} // has a token if follow is to look at the bucket soon

	mu      sync.Mutex
	placed  map[int]Placement
	grown   Grown
	changed chan struct{} // closed when placed or grown changes
	stop    context.CancelFunc
	done    chan struct{}
}

// Make makes the bucket of a cluster, with its settings and where each shard is. A cluster that is there
// is db.ErrExists.
func Make(ctx context.Context, js jetstream.JetStream, cluster names.Cluster, s Settings, placed []Placement) error {
	kv, err := js.CreateKeyValue(ctx, jetstream.KeyValueConfig{
		Bucket: cluster.Bucket(), Replicas: s.Servers, Storage: jetstream.FileStorage, History: 5, LimitMarkerTTL: marked,
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
	// Last: before it there is no cluster. Of two that make one, one does.
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

// Open reads the plan of a cluster and follows it until Close. A cluster that is not there is
// db.ErrNotFound.
func Open(ctx context.Context, js jetstream.JetStream, cluster names.Cluster) (*Plan, error) {
	kv, err := js.KeyValue(ctx, cluster.Bucket())
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		return nil, fmt.Errorf("%w: cluster %s: create it first", db.ErrNotFound, cluster)
	} else if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", cluster, err)
	}
	p := &Plan{
		js: js, kv: kv, bucket: cluster.Bucket(), told: cluster.Changed(), placed: map[int]Placement{}, changed: make(chan struct{}),
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
		return nil, fmt.Errorf("%w: cluster %s is of version %d, this program knows %d", db.ErrFormat, cluster, s.Version, version)
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

// every is how often a Plan looks at the bucket if no message says that it has changed. That is one request.
// It needs nothing that a server keeps for a reader, and could lose when it ends.
const every = 5 * time.Second

// Refresh has the bucket looked at soon: a node has said that it does not have what the plan says.
func (p *Plan) Refresh() {
	select {
	case p.refresh <- struct{}{}:
	default:
	}
}

// follow keeps the plan in step with the bucket.
func (p *Plan) follow(ctx context.Context) {
	defer close(p.done)
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.refresh:
		case <-time.After(every):
		}
		_ = p.Look(ctx) // what it knew stands, until it can look again
		select {
		case <-ctx.Done():
			return
		case <-time.After(100 * time.Millisecond): // however many ask
		}
	}
}

// Look reads where the shards are now.
func (p *Plan) Look(ctx context.Context) error {
	_, err := p.look(ctx, "")
	return err
}

// Fresh is Look by a server that has the revision of a key, or a later one: any server answers, and may lag
// behind.
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

// look is Look; it returns the revision of a key, too, unless that is empty.
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
		if errors.Is(err, jetstreamext.ErrBatchUnsupported) { // so the library calls a refusal, whatever the reason
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
		if m.Header.Get(jetstream.MarkerReasonHeader) != "" || m.Header.Get("KV-Operation") != "" { // a shard that was removed
			continue
		}
		if m.Subject == bucket+layoutKey {
			if err := json.Unmarshal(m.Data, &grown); err != nil || grown.Shards < 1 || len(grown.Starts) != grown.Shards {
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
	if grown.First < p.grown.First { // of a server that lags behind: a cluster only grows
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

// mostKeys is how many keys servers answer with at a time: a plan with more cannot be read by anybody.
// otherKeys of them are not of shards: the layout, and the one that Fresh asks for.
const (
	mostKeys  = 1024
	otherKeys = 2
)

// keys returns the subjects of the shards that the bucket has, with those of shards that were removed a short
// time ago, whose markers are still there.
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

// unreadable says why servers refuse to answer with the plan.
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

// ErrFull is the error of a plan that has no room for more shards.
var ErrFull = fmt.Errorf("%w: the plan has no room", db.ErrFull)

// Room refuses shards that the plan has no room for beside those that it has: it could not be read any more.
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

// Nodes returns the nodes that have a shard. The slice is not to be changed.
func (p *Plan) Nodes(shard int) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.placed[shard].Nodes
}

// Placement returns where a shard is, and what it began with.
func (p *Plan) Placement(shard int) Placement {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.placed[shard]
}

// Shards returns the numbers of all shards that have a place, in order. While a cluster grows they are those
// of two layouts.
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

// Of returns the shards that a node has, in order, and a channel that is closed when that may have
// changed.
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

// Change changes where a shard is: f gets the nodes, and returns those that are to have it. If somebody
// else changes it meanwhile f is called again.
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

// tell tells all clients and nodes that the plan has changed. One that misses it looks at the bucket within
// every.
func (p *Plan) tell() { _ = p.js.Conn().Publish(p.told, nil) }

// pause waits a moment before the bucket is looked at again; why is the error where the context ends.
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
	_ = p.hears.Unsubscribe() // of a connection that may be closed
	p.stop()
	<-p.done
}
