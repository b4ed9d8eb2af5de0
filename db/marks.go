package db

import (
	"bytes"
	"context"
	"iter"

	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
)

// Limits of marks.
const (
	// MaxMarkBytes is the length of the value of a mark at most.
	MaxMarkBytes = record.MaxMarkBytes

	// MaxMarksBytes is what names and values of the marks of one batch have together at most.
	MaxMarksBytes = record.MaxMarksBytes
)

// A Mark is bytes that a program keeps under a name, see Batch.Mark.
type Mark struct {
	Name  string
	Value []byte
}

// Mark stores bytes of the program's own under a name, in the commit of the batch: where the changes
// are, the mark is, and the other way round, whatever crashes. So a program that applies a log, or
// reads a queue, keeps there how far it has come, and nothing is applied twice or left out. The value
// is copied; an empty one takes the mark away. Of several under one name the last counts. A batch may
// have marks alone.
//
// A name is UTF-8 of 1 to 256 bytes; MaxMarkBytes and MaxMarksBytes bound the values. Marks are
// in checkpoints and backups, as of the state that these hold.
func (b *Batch) Mark(name string, value []byte) error {
	if b.err == nil {
		b.err = b.mark(name, value)
	}
	return b.err
}

func (b *Batch) mark(name string, value []byte) error {
	if b.done {
		return errCommitted
	}
	if err := b.db.writable(); err != nil {
		return err
	}
	m := record.Mark{Name: name, Value: bytes.Clone(value)}
	if err := m.Check(); err != nil {
		return err
	}
	if b.marked += m.Bytes(); b.marked > MaxMarksBytes {
		return fault.Invalid("marks of %d bytes in one batch, at most %d are possible", b.marked, MaxMarksBytes)
	}
	b.in.Marks = append(b.in.Marks, m)
	return nil
}

// Mark returns the bytes that the latest commit with a mark of that name has stored, or
// ErrNotFound. The slice is the caller's.
func (d *DB) Mark(name string) (value []byte, err error) {
	err = d.state.Read(func(v *state.View) error {
		value, err = markOf(v, name)
		return err
	})
	return value, err
}

// Mark is DB.Mark as of the snapshot.
func (s *Snapshot) Mark(name string) (value []byte, err error) {
	err = s.pin.Read(func(v *state.View) error {
		value, err = markOf(v, name)
		return err
	})
	return value, err
}

func markOf(v *state.View, name string) ([]byte, error) {
	if err := (record.Mark{Name: name}).Check(); err != nil {
		return nil, err
	}
	b, err := record.MarkOf(v.Snap, name)
	if err == nil && b == nil {
		err = fault.NotFound("mark %q", name)
	}
	return b, err
}

// Marks yields the marks whose names begin with prefix, in the order of the bytes of their names, as
// they are when the iteration starts; the empty prefix means all. An error ends it.
func (d *DB) Marks(ctx context.Context, prefix string) iter.Seq2[Mark, error] {
	return yielding(func(yield func(Mark) error) error {
		return d.state.Read(func(v *state.View) error {
			return record.ForEachMark(v.Snap, prefix, func(m record.Mark) error {
				if err := ctx.Err(); err != nil {
					return err
				}
				return yield(Mark(m))
			})
		})
	})
}
