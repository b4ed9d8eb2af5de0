package apply

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
)

// The names of marks. The prefix leaves other names to programs that embed a node.
const (
	prefix       = "cluster/"
	positionMark = prefix + "position"
	doingMark    = prefix + "doing"
	ofMark       = prefix + "of"
	closedMark   = prefix + "closed"
	opPrefix     = prefix + "op/"
	fencePrefix  = prefix + "fence/"
)

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
