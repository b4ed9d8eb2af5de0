package db

import (
	"context"
	"log/slog"
	"slices"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
)

// An Encoder describes a program that makes vectors of a modality from texts, or from files, so that
// a collection can be searched by these. The database only stores it, with the schema: checkpoints,
// backups and index-only copies have it, too. The database never runs it. The command line does
// (search --text, explore), by the protocol of docs/SHELL.md, and only where its user has allowed
// it. A program in Go calls its encoder itself, and gives Search the vector.
type Encoder struct {
	Modality string       `json:"modality"` // of the vectors that it prints
	Input    EncoderInput `json:"input"`    // what it reads
	Command  []string     `json:"command"`  // the program and its arguments; no shell is meant
}

// An EncoderInput says what an encoder reads, one a line.
type EncoderInput string

// The inputs of encoders.
const (
	InputText EncoderInput = "text" // texts
	InputFile EncoderInput = "file" // paths of files
)

// Encoders returns the encoders of the collection in the order of its modalities. They belong to
// the caller.
func (c *Collection) Encoders() ([]Encoder, error) {
	return look(c, func(_ *state.View, cv *state.CollectionView) (all []Encoder, _ error) {
		for _, e := range cv.Encoders {
			all = append(all, Encoder{e.Modality, EncoderInput(e.Input), slices.Clone(e.Command)})
		}
		return all, nil
	})
}

// SetEncoders replaces the encoders of the collection, durably and in one commit; none removes all.
// A modality may have one for each input. An index-only collection can have them, too. Versions of
// fddhdb that know no encoders refuse a database as long as it has one. A modality that is not
// there, or a command that is empty or longer than 16 KiB, is an ErrInvalid.
func (c *Collection) SetEncoders(ctx context.Context, encoders []Encoder) error {
	if err := c.writable(); err != nil {
		return err
	}
	if err := c.db.state.Guard.Enter(); err != nil {
		return err
	}
	defer c.db.state.Guard.Leave()
	var stored []record.Encoder
	for _, e := range encoders {
		stored = append(stored, record.Encoder{Modality: e.Modality, Input: record.EncoderInput(e.Input), Command: e.Command})
	}
	err := c.inside().Do(ctx, 0, func(tx *state.Tx, s *state.CollectionState) error {
		d, err := s.WithEncoders(stored)
		if err != nil {
			return err
		}
		return tx.AlterCollection(s, d)
	})
	if err == nil {
		c.db.changed(ctx, event.EncodersSet, event.Event{Collection: c.name, Attrs: []slog.Attr{slog.Int("encoders", len(encoders))}})
	}
	return err
}
