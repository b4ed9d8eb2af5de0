package apply

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/cespare/xxhash/v2"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
)

// A State is a database that is a replica of a shard. One goroutine calls Apply; the other methods may be
// called from any.
type State struct {
	DB            *db.DB
	shard         int
	index, shards int

	// Fetch reads the object of an operation that is too large for a message.
	fetch func(ctx context.Context, object string) ([]byte, error)

	mu       sync.Mutex
	position Position
	memory   memory
	moved    chan struct{} // closed when position changes
	closed   uint64        // sequence of the message behind which everything is refused; 0: there is none
	applying chan struct{} // has a token while a commit is made, or Hold holds them
	again    uint32        // not 0: the next message may have been applied in part, see doing; for who holds applying
}

// A Message is one of the log.
type Message struct {
	Seq  uint64
	Data []byte
}

// An Identity says which shard of which cluster a database is a replica of.
type Identity struct {
	Cluster string // plan.Settings.ID
	Shard   int    // its number
	Index   int    // its place among Shards, by which package shard says whose a key is
	Shards  int

	// Split, if not empty, is the id of the backup of a shard of which this one is a part: when a shard is
	// split anew, as that could not go on, what was made of the first attempt is of another one.
	Split string
}

func (i Identity) mark() []byte {
	b := fmt.Appendf(nil, "%s/%d/%d", i.Cluster, i.Shard, i.Shards)
	if i.Split != "" {
		b = fmt.Appendf(b, "/%s", i.Split)
	}
	return b
}

// ErrOther is the error of a database that is a replica of something else.
var ErrOther = errors.New("it is of another shard, or of another cluster")

// Open returns the state of a database, which is empty or has been a replica of the same shard before; else
// it is ErrOther. Apply goes on behind Position.
func Open(ctx context.Context, d *db.DB, of Identity, fetch func(ctx context.Context, object string) ([]byte, error)) (*State, error) {
	s := &State{
		DB: d, shard: of.Shard, index: of.Index, shards: of.Shards, fetch: fetch,
		moved: make(chan struct{}), applying: make(chan struct{}, 1),
	}
	switch b, err := d.Mark(ofMark); {
	case errors.Is(err, db.ErrNotFound):
		names, err := d.Collections()
		if err != nil {
			return nil, err
		}
		if len(names) > 0 {
			return nil, fmt.Errorf("%w: it says of none", ErrOther)
		}
		b := d.NewBatch()
		b.Mark(ofMark, of.mark())
		if err := b.Commit(ctx); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, err
	case !bytes.Equal(b, of.mark()):
		return nil, fmt.Errorf("%w: %q, not %q", ErrOther, b, of.mark())
	}
	b, err := d.Mark(positionMark)
	switch {
	case errors.Is(err, db.ErrNotFound):
	case err != nil:
		return nil, err
	default:
		if s.position, err = readPosition(b); err != nil {
			return nil, fmt.Errorf("%w: %w", db.ErrCorrupt, err)
		}
	}
	switch b, err := d.Mark(doingMark); {
	case errors.Is(err, db.ErrNotFound):
	case err != nil:
		return nil, err
	case len(b) != 4:
		return nil, fmt.Errorf("%w: mark %s: %d bytes", db.ErrCorrupt, doingMark, len(b))
	default:
		s.again = binary.BigEndian.Uint32(b)
	}
	if s.closed, err = closed(d); err != nil {
		return nil, err
	}
	for m, err := range d.Marks(ctx, opPrefix) {
		if err != nil {
			return nil, err
		}
		o, err := readOutcome(m)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", db.ErrCorrupt, err)
		}
		s.memory.add(o)
	}
	slices.SortFunc(s.memory.order, func(a, b *wire.Outcome) int { return cmp.Compare(a.Seq, b.Seq) })
	return s, nil
}

// Begin makes a database a replica that holds what the messages up to a sequence would make: one that was
// built, or the backup of another cluster. What it remembered of that is forgotten.
func Begin(ctx context.Context, d *db.DB, of Identity, seq uint64) error {
	var names []string
	for m, err := range d.Marks(ctx, prefix) {
		if err != nil {
			return err
		}
		names = append(names, m.Name)
	}
	for some := range slices.Chunk(names, 2000) {
		b := d.NewBatch()
		for _, name := range some {
			b.Mark(name, nil)
		}
		if err := b.Commit(ctx); err != nil {
			return err
		}
	}
	b := d.NewBatch()
	b.Mark(ofMark, of.mark())
	b.Mark(positionMark, Position{Seq: seq}.mark())
	return b.Commit(ctx)
}

// Position returns how far the database has come.
func (s *State) Position() Position {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.position
}

// Shown returns the sequence of the latest commit that readers see: nothing that has been read of the
// database so far is newer. Position may be behind it for a moment.
func (s *State) Shown() (uint64, error) {
	b, err := s.DB.Mark(positionMark)
	if errors.Is(err, db.ErrNotFound) {
		return 0, nil
	} else if err != nil {
		return 0, err
	}
	p, err := readPosition(b)
	return p.Seq, err
}

// Wait waits until the message with that sequence has been applied.
func (s *State) Wait(ctx context.Context, seq uint64) error {
	for {
		s.mu.Lock()
		at, moved := s.position.Seq, s.moved
		s.mu.Unlock()
		if at >= seq {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Outcome returns what an operation has come to, or nil: it has not been applied yet, or wire.Memory
// sequences ago.
func (s *State) Outcome(id wire.ID) *wire.Outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.memory.outcomes[id]
}

// A GapError says that messages are missing between the position and the next one: the log has been
// trimmed, and the replica has to begin with a backup.
type GapError struct{ After, Next uint64 }

func (e *GapError) Error() string {
	return fmt.Sprintf("fddhdb: behind message %d of the log comes %d", e.After, e.Next)
}

// An Applied is a message that is an operation, with what that has come to, maybe by an earlier message.
type Applied struct {
	Seq uint64
	*wire.Outcome
}

// A pending is a message that is being applied.
type pending struct {
	position Position // behind it
	op       *wire.Op // nil: it is none, and bad says why
	bad      error
	outcome  *wire.Outcome // once that is known
	fresh    bool          // the outcome is to be remembered
}

// Apply applies messages, which follow each other in the log; those up to the position, which have been
// applied before, are left out. It returns what the messages have come to, in order, as far as they are
// operations.
//
// An error is trouble of this replica, such as a full disk or an object that cannot be read, or a
// *GapError, or wire.ErrVersion: nothing is left out, the position says how far it came, and Apply may be
// called again with the rest.
func (s *State) Apply(ctx context.Context, messages []Message) (all []Applied, err error) {
	at := s.Position()
	var run []*pending // unconditional writes
	flush := func() error {
		if len(run) == 0 {
			return nil
		}
		now := run
		run = nil
		free, err := s.Hold(ctx)
		if err != nil {
			return err
		}
		defer free()
		done, err := s.commit(ctx, now)
		all = append(all, done...)
		return err
	}
	bytes := 0
	for _, m := range messages {
		if m.Seq <= at.Seq {
			continue
		}
		if m.Seq != at.Seq+1 {
			err := errors.Join(flush(), &GapError{After: at.Seq, Next: m.Seq})
			return all, err
		}
		p := &pending{}
		if p.op, p.bad = wire.DecodeOp(m.Data); errors.Is(p.bad, wire.ErrVersion) {
			err := errors.Join(flush(), fmt.Errorf("message %d: %w", m.Seq, p.bad))
			return all, err
		}
		at = at.next(m.Seq, p.op)
		p.position = at
		if p.op != nil && p.op.Kind == wire.Write && !conditional(p.op) && p.op.Object == "" {
			run = append(run, p)
			if bytes += len(m.Data); len(run) < maxRun && bytes < maxRunBytes {
				continue
			}
			bytes = 0
			if err := flush(); err != nil {
				return all, err
			}
			continue
		}
		bytes = 0
		if err := flush(); err != nil {
			return all, err
		}
		free, err := s.Hold(ctx)
		if err != nil {
			return all, err
		}
		done, err := s.alone(ctx, p)
		free()
		all = append(all, done...)
		if err != nil {
			return all, err
		}
	}
	err = flush()
	return all, err
}

// These bound the operations that share a commit: by the marks that they bring, and by their bytes.
const (
	maxRun      = 1500
	maxRunBytes = 32 << 20
)

// next is the position behind the message with that sequence.
func (p Position) next(seq uint64, op *wire.Op) Position {
	n := Position{Seq: seq}
	if op != nil {
		n.ID = op.ID
	}
	b := binary.BigEndian.AppendUint64(nil, p.Chain)
	b = binary.BigEndian.AppendUint64(b, seq)
	n.Chain = xxhash.Sum64(append(b, n.ID[:]...))
	return n
}

func conditional(op *wire.Op) bool {
	return slices.ContainsFunc(op.Changes, func(c wire.Change) bool { return c.Kind == wire.Expect })
}
