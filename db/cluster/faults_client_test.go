//go:build unix

package cluster_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster"
	"github.com/fddhdb/fddhdb/db/cluster/internal/checker"
	"github.com/fddhdb/fddhdb/db/shard"
)

const (
	keysPerShard = 3 // few: most operations meet others
	patience     = 25 * time.Second
	hangs        = 10 * time.Second // after its deadline a call has to return
)

// keyOf returns a key of a shard.
func keyOf(prefix string, of int) string {
	for i := 0; ; i++ {
		if key := fmt.Sprintf("%s-%d", prefix, i); shard.Of(key, siteShards) == of {
			return key
		}
	}
}

// tagOf returns a key of the shard of another key.
func tagOf(session int, key string) string {
	return keyOf(fmt.Sprint("tag", session), shardOfKey(key))
}

// faultKeys returns the keys that all clients write.
func faultKeys() (keys []string) {
	for s := range siteShards {
		for i := range keysPerShard {
			keys = append(keys, keyOf(fmt.Sprint("k", i), s))
		}
	}
	return keys
}

// A session is a client that records what it does.
type session struct {
	t       *testing.T
	number  int
	steady  bool // it has patience with every call, and never stops to ask
	slow    int  // by how much it is slower than in a short run, so that the order of writes can be found
	client  *cluster.Client
	codes   *cluster.Collection
	history *checker.History
	writes  atomic.Int64
	late    *atomic.Int64 // calls that have not returned in time

	mu    sync.Mutex
	odd   []string            // errors that no fault explains
	held  map[string]*db.Item // what it has read last, by key
	found map[string]string   // by its latest search: values by key
}

// faultCodes returns the collection that clients write, which any of them may make.
func faultCodes(t testing.TB, c *cluster.Client) *cluster.Collection {
	t.Helper()
	codes, err := c.CreateCollection(t.Context(), "codes",
		db.Schema{Bits: 16, Fields: []db.Field{{Name: "value", Type: db.String}}})
	if err != nil {
		t.Fatal(err)
	}
	return codes
}

// faultItem returns the item with a value. Its code and its payload follow from the value, and so does the
// length of the payload, which the value may end with.
func faultItem(key, value string) *db.Item {
	h := uint16(0)
	for _, c := range []byte(value) {
		h = h*31 + uint16(c)
	}
	n := len(value)
	if _, size, ok := strings.Cut(value, "x"); ok {
		n, _ = strconv.Atoi(size)
	}
	payload := bytes.Repeat([]byte(value), n/len(value)+1)[:n]
	return &db.Item{Key: key, Code: []byte{byte(h), byte(h >> 8)}, Payload: payload,
		Fields: map[string]any{"value": value}}
}

// valueOf returns the value of an item; nil has none.
func valueOf(it *db.Item) string {
	if it == nil {
		return ""
	}
	value, _ := it.Fields["value"].(string)
	return value
}

// sizes draws what a value ends with: a few payloads take several messages, and the largest has 8 MiB.
func sizes(r *rand.Rand) string {
	switch k := r.IntN(400); {
	case k < 1:
		return fmt.Sprint("x", r.IntN(8<<20))
	case k < 12:
		return fmt.Sprint("x", 400_000+r.IntN(1<<20))
	case k < 40:
		return fmt.Sprint("x", 1+r.IntN(100_000))
	}
	return ""
}

// begin begins an operation. impatient ones end soon.
func (s *session) begin(ctx context.Context, r *rand.Rand,
	o *checker.Op) (context.Context, context.CancelFunc) {
	o.Session, o.Patient = s.number, s.steady || r.IntN(10) > 0
	wait := patience
	if !o.Patient {
		wait = time.Duration(5+r.IntN(400)) * time.Millisecond
	}
	o.Begin = s.history.Now()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), wait)
	return ctx, func() {
		if deadline, _ := ctx.Deadline(); time.Since(deadline) > hangs {
			s.late.Add(1)
			s.t.Errorf("%v: it has returned %v after its deadline", o, time.Since(deadline))
		}
		cancel()
	}
}

// end notes how an operation has ended.
func (s *session) end(o *checker.Op, err error) {
	o.End = s.history.Now()
	var unknown *cluster.UnknownError
	switch {
	case err == nil:
		o.Result = checker.OK
	case errors.As(err, &unknown):
		o.Result = checker.Unknown
	case o.Kind == checker.PutIf && errors.Is(err, db.ErrConflict):
		o.Result = checker.Refused
	default:
		o.Result = checker.Failed
	}
	if err == nil {
		return
	}
	o.Err, o.Cause = err.Error(), kindOfError(err)
	if o.Result != checker.Refused && strings.Contains(o.Cause, "odd") {
		s.mu.Lock()
		s.odd = append(s.odd, o.String())
		s.mu.Unlock()
	}
}

// duplicateInProcess is the code of JetStream's error where a message comes again whose first copy is not
// stored yet.
const duplicateInProcess jetstream.ErrorCode = 10158

// kindOfError names the kind of an error. Odd ones are those that no fault explains.
func kindOfError(err error) string {
	var unknown *cluster.UnknownError
	var api *jetstream.APIError
	var silent *cluster.ShardError
	kind := func() string {
		switch {
		case errors.As(err, &silent):
			return "no replica"
		case errors.Is(err, context.DeadlineExceeded):
			return "deadline"
		case errors.As(err, &api) && api.ErrorCode == duplicateInProcess: // no reason to give up
			return "odd: the same message is in process"
		case errors.As(err, &api):
			return fmt.Sprint("JetStream ", api.ErrorCode)
		case errors.Is(err, nats.ErrNoResponders), errors.Is(err, jetstream.ErrNoStreamResponse):
			return "no responders"
		case errors.Is(err, nats.ErrTimeout), errors.Is(err, nats.ErrReconnectBufExceeded),
			errors.Is(err, nats.ErrDisconnected):
			return "connection"
		}
		return fmt.Sprintf("odd: %T", err)
	}()
	if errors.As(err, &unknown) {
		return "unknown, " + kind
	}
	return kind
}

// write makes a write to a key, and sometimes asks later what it has come to.
func (s *session) write(ctx context.Context, r *rand.Rand, kind checker.Kind, key string, old *db.Item) {
	o := checker.Op{Kind: kind, Key: key, Value: fmt.Sprintf("s%d-%d", s.number, s.writes.Add(1)) + sizes(r),
		Old: valueOf(old)}
	call, cancel := s.begin(ctx, r, &o)
	defer cancel()
	var err error
	switch item := faultItem(key, o.Value); kind {
	case checker.Put:
		_, err = s.codes.Put(call, item)
	case checker.PutIf:
		err = s.codes.PutIf(call, item, old)
	case checker.Delete:
		o.Tag = tagOf(s.number, key)
		b := s.codes.NewBatch()
		b.Delete(key)
		b.Put(faultItem(o.Tag, o.Value))
		err = b.Commit(call)
	}
	s.end(&o, err)
	var unknown *cluster.UnknownError
	if errors.As(err, &unknown) && !s.steady && r.IntN(2) == 0 {
		s.ask(ctx, r, &o, unknown)
	}
	s.history.Add(o)
}

// ask asks what a write has come to of which nobody knows.
func (s *session) ask(ctx context.Context, r *rand.Rand, o *checker.Op, unknown *cluster.UnknownError) {
	select {
	case <-ctx.Done():
	case <-time.After(time.Duration(r.IntN(3000)) * time.Millisecond):
	}
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	applied, refused, err := s.client.Outcome(call, unknown)
	switch {
	case err != nil:
		return
	case applied:
		o.Later = checker.OK
	case refused != nil:
		o.Later = checker.Refused
	default:
		o.Later = checker.Unknown
	}
	o.End = s.history.Now()
}

// get reads a key, and holds what it has read.
func (s *session) get(ctx context.Context, r *rand.Rand, key string) {
	o := checker.Op{Kind: checker.Get, Key: key}
	call, cancel := s.begin(ctx, r, &o)
	defer cancel()
	it, err := s.codes.Get(call, key)
	if errors.Is(err, db.ErrNotFound) {
		it, err = nil, nil
	}
	s.end(&o, err)
	if err == nil {
		if it != nil {
			o.Read = valueOf(it)
			if want := faultItem(key, o.Read); string(it.Code) != string(want.Code) || it.Key != key ||
				!bytes.Equal(it.Payload, want.Payload) {
				s.t.Errorf("%v: key %q, code %x, payload of %d bytes: it was written with code %x, payload of %d bytes",
					&o, it.Key, it.Code, len(it.Payload), want.Code, len(want.Payload))
			}
		}
		s.mu.Lock()
		s.held[key] = it
		s.mu.Unlock()
	}
	s.history.Add(o)
}

func (s *session) holds(key string) *db.Item {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held[key]
}

// search finds all items.
func (s *session) search(ctx context.Context, r *rand.Rand, kind checker.Kind) {
	o := checker.Op{Kind: kind, Items: map[string]string{}}
	call, cancel := s.begin(ctx, r, &o)
	defer cancel()
	res, err := s.codes.Search(call,
		cluster.Query{Query: db.Query{Code: []byte{byte(r.Uint32()), byte(r.Uint32())}, K: 1000,
			Include: db.IncludeFields}})
	s.end(&o, err)
	if err == nil {
		for _, h := range res.Hits {
			if _, twice := o.Items[h.Key]; twice {
				s.t.Errorf("session %d: a search finds %q twice", s.number, h.Key)
			}
			o.Items[h.Key] = valueOf(h.Item)
		}
		s.mu.Lock()
		s.found = o.Items
		s.mu.Unlock()
	}
	s.history.Add(o)
}

func (s *session) count(ctx context.Context, r *rand.Rand) {
	o := checker.Op{Kind: checker.Count}
	call, cancel := s.begin(ctx, r, &o)
	defer cancel()
	n, err := s.codes.Count(call, "")
	o.N = n
	s.end(&o, err)
	s.history.Add(o)
}

// work makes operations until the context ends.
func (s *session) work(ctx context.Context, r *rand.Rand, keys []string) {
	for ctx.Err() == nil {
		key := keys[r.IntN(len(keys))]
		switch k := r.IntN(100); {
		case k < 22:
			s.write(ctx, r, checker.Put, key, nil)
		case k < 42:
			if r.IntN(4) > 0 { // else it holds an old one, mostly
				s.get(ctx, r, key)
			}
			s.write(ctx, r, checker.PutIf, key, s.holds(key))
		case k < 47:
			s.write(ctx, r, checker.PutIf, key, nil)
		case k < 55:
			s.write(ctx, r, checker.Delete, key, nil)
		case k < 90:
			s.get(ctx, r, key)
		case k < 97:
			s.search(ctx, r, checker.Search)
		default:
			s.count(ctx, r)
		}
		pause(ctx, time.Duration(r.IntN(12)*s.slow)*time.Millisecond)
	}
}

// pause lets some time pass, so that the machine is not the fault that is tested.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
