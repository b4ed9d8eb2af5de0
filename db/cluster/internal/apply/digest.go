package apply

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
)

// comparisons holds the latest comparison. A new one ends the one before: a replica whose log asks for many
// comparisons holds one snapshot at a time.
type comparisons struct {
	mu     sync.Mutex
	latest *comparison
	turns  chan struct{} // bounds how many are taken at a time, see ShareTurns; nil: there is a hurry
}

// A comparison is the digests at one message.
type comparison struct {
	id   wire.ID // of the operation that asked for it
	seq  uint64  // of the message
	stop context.CancelFunc
	done chan struct{} // closed when all and err are known
	all  []wire.PartDigest
	err  error
}

// begin begins to take the digests of what the database has now. Messages are applied meanwhile. Without a
// hurry it waits for its turn, and rests as long as it works.
func (x *comparisons) begin(ctx context.Context, d *db.DB, id wire.ID, seq uint64) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if last := x.latest; last != nil {
		last.stop()
		<-last.done
	}
	names, err := d.Collections() // now: one may be dropped before its turn comes
	if err != nil {
		return err
	}
	snap, err := d.Snapshot()
	if err != nil {
		return err
	}
	c := &comparison{id: id, seq: seq, done: make(chan struct{})}
	ctx, c.stop = context.WithCancel(context.WithoutCancel(ctx)) // closing the database ends it, too
	x.latest = c
	go func() {
		defer close(c.done)
		defer c.stop()
		defer func() {
			if p := recover(); p != nil {
				c.err = fmt.Errorf("panic: %v", p)
			}
			if err := snap.Close(); !errors.Is(err, db.ErrClosed) {
				c.err = errors.Join(c.err, err)
			}
		}()
		if x.turns != nil {
			select {
			case x.turns <- struct{}{}:
				defer func() { <-x.turns }()
			case <-ctx.Done():
			}
		}
		c.all, c.err = digests(ctx, names, snap, x.turns == nil)
	}()
	return nil
}

// end gives up the latest comparison.
func (x *comparisons) end() {
	if c := x.now(); c != nil {
		c.stop()
		<-c.done
	}
}

// End gives up the comparisons that the replica is at. Call it before the database is closed.
func (s *State) End() {
	s.daily.end()
	s.comparisons.end()
}

// now returns the latest comparison, or nil.
func (x *comparisons) now() *comparison {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.latest
}

// dayOf returns the number of the day of a time, in UTC; 0: it is not known.
func dayOf(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix() / int64(24*time.Hour/time.Second)
}

// Began notes when the message at the position was written, so that the next one may begin a day.
func (s *State) Began(at time.Time) { s.day = max(s.day, dayOf(at)) }

// checks reports whether a message is the first of a day: replicas are compared as they are before it. All of
// them know that by the log.
func (s *State) checks(m Message) bool {
	day := dayOf(m.Time)
	if day <= s.day {
		return false
	}
	known := s.day > 0
	s.day = day
	return known
}

// Checked returns a digest of all that the replica had when a day began, behind the message with that
// sequence; replicas with the same sequence have the same digest. It is 0 until there is one.
func (s *State) Checked() (seq, sum uint64) {
	c := s.daily.now()
	if c == nil {
		return 0, 0
	}
	select {
	case <-c.done:
	default:
		return 0, 0
	}
	if c.err != nil {
		return 0, 0
	}
	h := xxhash.New()
	for _, d := range c.all {
		fmt.Fprintf(h, "%q %x\n", d.Part, d.Sum)
	}
	return c.seq, h.Sum64()
}

// Digests waits for the digests that the Compare with that ID has taken.
func (s *State) Digests(ctx context.Context, id wire.ID) ([]wire.PartDigest, error) {
	c := s.comparisons.now()
	if c == nil || c.id != id {
		return nil, fmt.Errorf("%w: a comparison that this replica has not begun, or has given up for another one",
			db.ErrNotFound)
	}
	select {
	case <-c.done:
		return c.all, c.err
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: the digests are not complete", wire.ErrBehind)
	}
}

// digests returns a digest of each part of a snapshot: of each collection its schema, labels with their ids,
// items, and the codes and rows of each space. Replicas of a shard have the same ones at the same message. It
// reads the whole database.
func digests(ctx context.Context, names []string, snap *db.Snapshot, hurry bool) (all []wire.PartDigest,
	err error) {
	rest := func() {}
	if began, n := time.Now(), 0; !hurry {
		rest = func() {
			if n++; n%100 == 0 {
				select {
				case <-ctx.Done():
				case <-time.After(time.Since(began)):
				}
				began = time.Now()
			}
		}
	}
	for _, name := range names {
		c, err := snap.Collection(name)
		if err == nil {
			err = digest(ctx, c, func(part string, fill func(put func(any) error) error) error {
				h := sha256.New()
				encoder := json.NewEncoder(h)
				err := fill(func(x any) error { rest(); return encoder.Encode(x) })
				all = append(all, wire.PartDigest{Part: fmt.Sprintf("%s of %q", part, name), Sum: h.Sum(nil)})
				return err
			})
		}
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

func digest(ctx context.Context, c *db.Collection,
	part func(name string, fill func(put func(any) error) error) error) error {
	schema, err := c.Schema()
	if err != nil {
		return err
	}
	labels, err := c.Labels()
	if err != nil {
		return err
	}
	spaces, err := c.Spaces(ctx)
	if err != nil {
		return err
	}
	err = errors.Join(
		part("schema", func(put func(any) error) error { return put(schema) }),
		part("labels", func(put func(any) error) error { return put(labels) }),
		part("items", func(put func(any) error) error {
			for it, err := range c.Items(ctx, "") {
				if err == nil {
					err = put(it)
				}
				if err != nil {
					return err
				}
			}
			return nil
		}))
	codes := func(c *db.Collection) func(put func(any) error) error {
		return func(put func(any) error) error {
			for coded, err := range c.Codes(ctx, "") {
				if err == nil {
					err = put(coded)
				}
				if err != nil && !errors.Is(err, db.ErrNoModel) {
					return err
				}
			}
			return nil
		}
	}
	if schema.Bits > 0 {
		return errors.Join(err, part("codes", codes(c)))
	}
	for _, s := range spaces {
		in, ierr := c.InSpace(s.Space, 0)
		if errors.Is(ierr, db.ErrBusy) { // it is being built
			continue
		}
		if ierr == nil {
			ierr = part(fmt.Sprintf("codes in space %d", s.Space), codes(in))
		}
		err = errors.Join(err, ierr)
	}
	return err
}
