package apply

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
	"github.com/fddhdb/fddhdb/db/report"
)

// A State is a database that is a replica of a shard. Only one goroutine may call Apply; any goroutine may
// call the other methods.
type State struct {
	DB            *db.DB
	shard, shards int

	mu       sync.Mutex
	position Position
	memory   memory
	chunks   chunks        // of Apply alone
	moved    chan struct{} // closed when position changes
	again    uint32        // not 0: the next message may be applied in part, see doing
	unread   atomic.Uint64 // messages that were no operations
	skips    map[uint64]bool

	comparisons comparisons // that operations ask for
	daily       comparisons
	day         int64 // of the latest message; 0: not known
	indexing    indexing
	turns       chan struct{} // see ShareTurns
}

// A Message is a message of the log.
type Message struct {
	Seq     uint64
	Data    []byte
	Time    time.Time // when the servers stored it; zero: not known
	Control bool      // it came on the subject of control operations, to which writers have no access
}

// An Identity names the shard and cluster that a database is a replica of.
type Identity struct {
	Cluster string // plan.Settings.ID
	Shard   int    // of Shards, as package shard maps keys to them
	Shards  int
}

func (i Identity) mark() []byte {
	return fmt.Appendf(nil, "%s/%d/%d", i.Cluster, i.Shard, i.Shards)
}

// ErrOther says that a database is a replica of another shard or cluster.
var ErrOther = errors.New("it is of another shard, or of another cluster")

// Open returns the state of a database that is empty or was a replica of the same shard; another database is
// ErrOther. Apply continues after Position.
func Open(ctx context.Context, d *db.DB, of Identity) (*State, error) {
	s := &State{DB: d, shard: of.Shard, shards: of.Shards, moved: make(chan struct{}),
		indexing: indexing{work: make(chan struct{}, 1), problems: map[string]error{}}}
	s.ShareTurns(make(chan struct{}, 1))
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
	for m, err := range d.Marks(ctx, chunkPrefix) {
		if err == nil {
			err = s.chunks.read(m)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", db.ErrCorrupt, err)
		}
	}
	for key := range s.chunks.of {
		if s.memory.outcomes[key.id] != nil {
			s.chunks.drop(key)
		}
	}
	s.chunks.expire(s.position.Seq)
	return s, nil
}

// Begin turns a database into a replica that contains the messages up to a sequence: a database that was
// built, or the backup of another cluster. It deletes what the database remembers of operations there, and
// spaces that are being built: no log says how they go on. Its indexes of vectors stay.
func Begin(ctx context.Context, d *db.DB, of Identity, seq uint64) error {
	collections, err := d.Collections()
	if err != nil {
		return err
	}
	b := d.NewBatch()
	_, was := d.Mark(ofMark) // a replica says which indexes are to be there, another database has them
	for _, name := range collections {
		c, err := d.Collection(name)
		if err != nil {
			return err
		}
		if errors.Is(was, db.ErrNotFound) {
			err = markIndexes(b, c)
		}
		if err != nil {
			return err
		}
		all, err := spaces(ctx, c)
		for space, is := range all {
			if err == nil && is == report.SpaceBuilding {
				err = c.DropSpace(ctx, space)
			}
		}
		if err != nil {
			return err
		}
	}
	var names []string
	for m, err := range d.Marks(ctx, prefix) {
		if err != nil {
			return err
		}
		if !strings.HasPrefix(m.Name, IndexMarks) {
			names = append(names, m.Name)
		}
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
	b.Mark(ofMark, of.mark())
	b.Mark(positionMark, Position{Seq: seq}.mark())
	return b.Commit(ctx)
}

// Position returns how far the database has applied the log.
func (s *State) Position() Position {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.position
}

// Shown returns the sequence of the latest commit that readers see. No data read from the database so far is
// newer. Position may be behind it for a moment.
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

// Outcome returns the outcome of an operation. It is nil if the operation has not been applied yet, or was
// applied more than wire.Memory sequences ago.
func (s *State) Outcome(id wire.ID) *wire.Outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.memory.outcomes[id]
}

// Unread returns how many messages, since Open, were no operations of this program: anybody who may write to
// the log can have written them. They change nothing.
func (s *State) Unread() uint64 { return s.unread.Load() }

// SkipAll makes Apply pass over messages that stop every replica: those that Skips among other messages name.
// The caller reads these before the messages, wherever they are in the log.
func (s *State) SkipAll(others []Message) {
	s.skips = map[uint64]bool{}
	for _, m := range others {
		op, err := wire.DecodeOp(m.Data)
		if err == nil && op.Kind == wire.Skip && op.Of < m.Seq {
			s.skips[op.Of] = true
		}
	}
}

var errSkipped = errors.New("an operator wants it to be passed over")

// A GapError says that messages are missing between the position and the next one: the log has been trimmed,
// and the replica must start from a backup.
type GapError struct{ After, Next uint64 }

func (e *GapError) Error() string {
	return fmt.Sprintf("fddhdb: behind message %d of the log comes %d", e.After, e.Next)
}

// An Applied is the outcome of an operation in a message. An earlier message may have decided it.
type Applied struct {
	Seq uint64
	*wire.Outcome
}

// A pending is a message that is being applied.
type pending struct {
	position Position      // after the message
	op       *wire.Op      // nil: it is not an operation
	control  bool          // Message.Control
	outcome  *wire.Outcome // nil until it is known
	fresh    bool          // the outcome is new and must be stored
}

// Apply applies consecutive messages of the log. It skips messages up to the position, which are already
// applied. It returns the outcomes of the operations among the messages, in order.
//
// An error is trouble of this replica, such as a full disk, or a *GapError, or
// wire.ErrVersion. Apply then skips nothing: the position says how far it came, and you may call it again
// with the rest.
func (s *State) Apply(ctx context.Context, messages []Message) (all []Applied, err error) {
	at := s.Position()
	var run []*pending // unconditional writes
	flush := func() error {
		if len(run) == 0 {
			return nil
		}
		now := run
		run = nil
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
		if s.checks(m) {
			err := flush()
			if err == nil {
				err = s.daily.begin(ctx, s.DB, wire.ID{}, at.Seq)
			}
			if err != nil {
				return all, err
			}
		}
		op, err := wire.DecodeOp(m.Data)
		if s.skips[m.Seq] {
			err = errSkipped
		}
		if errors.Is(err, wire.ErrVersion) {
			return all, errors.Join(flush(), fmt.Errorf("message %d: %w", m.Seq, err))
		}
		if err != nil {
			s.unread.Add(1)
			op = nil
		}
		p := &pending{op: op, control: m.Control}
		at = at.next(m.Seq, p.op)
		p.position = at
		if p.op != nil && p.op.Kind == wire.Write && !conditional(p.op) {
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
		done, err := s.alone(ctx, p)
		all = append(all, done...)
		if err != nil {
			return all, err
		}
	}
	err = flush()
	return all, err
}

// Bounds of the operations in one commit: by the number of their marks, and by their bytes.
const (
	maxRun      = 1500
	maxRunBytes = 32 << 20
)

// next returns the position after the message with that sequence.
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

// The names of marks. The prefix leaves other names to programs that embed a node.
const (
	prefix       = "cluster/"
	positionMark = prefix + "position"
	doingMark    = prefix + "doing"
	ofMark       = prefix + "of"
	opPrefix     = prefix + "op/"
	chunkPrefix  = prefix + "chunk/"
	fencePrefix  = prefix + "fence/"
)

// IndexMarks is the prefix of the marks that say which vectors are to be indexed.
const IndexMarks = prefix + "index/"

// A Position says how far a database has applied the log.
type Position struct {
	Seq uint64  // of the last applied message; 0: none
	ID  wire.ID // of its operation; zero if the message was not an operation

	// Chain is a hash of all IDs and sequences so far. Two replicas with the same sequence and different
	// chains have applied different logs.
	Chain uint64
}

const positionBytes = 8 + len(wire.ID{}) + 8

func (p Position) mark() []byte {
	b := binary.BigEndian.AppendUint64(nil, p.Seq)
	return binary.BigEndian.AppendUint64(append(b, p.ID[:]...), p.Chain)
}

func readPosition(b []byte) (p Position, err error) {
	if len(b) != positionBytes {
		return p, fmt.Errorf("mark %s: %d bytes, not %d", positionMark, len(b), positionBytes)
	}
	p.Seq, p.Chain = binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[positionBytes-8:])
	copy(p.ID[:], b[8:])
	return p, nil
}

// maxText bounds the text of a remembered error.
const maxText = 400

// A memory holds the outcomes of the latest operations, up to wire.Memory sequences back.
type memory struct {
	outcomes map[wire.ID]*wire.Outcome
	order    []*wire.Outcome // by sequence
	first    int             // index into order: earlier outcomes are forgotten
}

func (m *memory) add(o *wire.Outcome) {
	if m.outcomes == nil {
		m.outcomes = map[wire.ID]*wire.Outcome{}
	}
	m.outcomes[o.ID] = o
	m.order = append(m.order, o)
}

// old returns the outcomes that become too old once the message with that sequence is applied. The slice is
// valid until forget.
func (m *memory) old(seq uint64) []*wire.Outcome {
	to := m.first
	for to < len(m.order) && m.order[to].Seq+wire.Memory <= seq {
		to++
	}
	return m.order[m.first:to]
}

// forget removes the n oldest outcomes.
func (m *memory) forget(n int) {
	for _, o := range m.order[m.first : m.first+n] {
		delete(m.outcomes, o.ID)
	}
	if m.first += n; m.first > len(m.order)/2 {
		m.order = append(m.order[:0], m.order[m.first:]...)
		m.first = 0
	}
}

func opMark(id wire.ID) string { return opPrefix + id.String() }

// outcomeMark returns the value of the mark of an outcome.
func outcomeMark(o *wire.Outcome) []byte {
	b := binary.BigEndian.AppendUint64(nil, o.Seq)
	if o.Fault == nil {
		return append(b, 0)
	}
	text := o.Fault.Text
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "") + "..."
	}
	return append(append(b, byte(o.Fault.Code)), text...)
}

func readOutcome(m db.Mark) (*wire.Outcome, error) {
	o := &wire.Outcome{}
	id, err := hex.DecodeString(strings.TrimPrefix(m.Name, opPrefix))
	if err != nil || len(id) != len(o.ID) || len(m.Value) < 9 {
		return nil, fmt.Errorf("mark %q: %d bytes", m.Name, len(m.Value))
	}
	copy(o.ID[:], id)
	o.Seq = binary.BigEndian.Uint64(m.Value)
	if code := wire.Code(m.Value[8]); code != 0 {
		o.Fault = &wire.Fault{Code: code, Text: string(m.Value[9:])}
	}
	return o, nil
}
