package record

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/fddhdb/fddhdb/db/fault"
)

// An Encoder describes a program that makes vectors of a modality. The database stores it and runs
// nothing. It is part of the Descriptor, and package db exports it: the JSON names are a promise to
// both.
type Encoder struct {
	Modality string       `json:"modality"` // of the vectors that it prints
	Input    EncoderInput `json:"input"`
	Command  []string     `json:"command"` // the program and its arguments
}

// An EncoderInput says what an encoder reads, one a line.
type EncoderInput string

// The inputs of encoders.
const (
	InputText EncoderInput = "text" // texts
	InputFile EncoderInput = "file" // paths of files
)

// WithEncoders returns the descriptor of the collection when it has these encoders and no others. A
// modality has one encoder for each input at most.
func (d *Descriptor) WithEncoders(encoders []Encoder) (*Descriptor, error) {
	with := *d
	with.Encoders = nil
	for _, e := range encoders {
		e.Command = slices.Clone(e.Command)
		with.Encoders = append(with.Encoders, e)
	}
	// Unknown modalities come first, and checkEncoders refuses them.
	slices.SortStableFunc(with.Encoders, func(a, b Encoder) int { return d.compareEncoders(&a, &b) })
	if err := with.checkEncoders(); err != nil {
		return nil, err
	}
	return &with, nil
}

func (d *Descriptor) compareEncoders(a, b *Encoder) int {
	position := func(e *Encoder) int {
		return slices.IndexFunc(d.Modalities, func(m Modality) bool { return m.Name == e.Modality })
	}
	return cmp.Or(cmp.Compare(position(a), position(b)), cmp.Compare(a.Input, b.Input))
}

// checkEncoders reports what is wrong with the encoders, or with their order, as an ErrInvalid.
func (d *Descriptor) checkEncoders() error {
	for i := range d.Encoders {
		e := &d.Encoders[i]
		if _, err := d.ModalityOf(e.Modality); err != nil {
			return err
		}
		if e.Input != InputText && e.Input != InputFile {
			return fault.Invalid("the encoder of modality %q: unknown input %q: text and file are possible", e.Modality, Shortened(string(e.Input)))
		}
		if err := e.checkCommand(); err != nil {
			return err
		}
		if i == 0 {
			continue
		}
		switch order := d.compareEncoders(&d.Encoders[i-1], e); {
		case order == 0:
			return fault.Invalid("modality %q has two encoders of input %s: one is possible", e.Modality, e.Input)
		case order > 0:
			return fault.Invalid("the encoder of modality %q is not in the order of modalities", e.Modality)
		}
	}
	return nil
}

func (e *Encoder) checkCommand() error {
	if len(e.Command) == 0 || e.Command[0] == "" {
		return fault.Invalid("the encoder of modality %q: the command is empty: a program and its arguments are expected", e.Modality)
	}
	size := 0
	for _, word := range e.Command {
		if !utf8.ValidString(word) || strings.ContainsRune(word, 0) {
			return fault.Invalid("the encoder of modality %q: %q is not UTF-8, or has a byte 0", e.Modality, Shortened(word))
		}
		size += len(word) + 1
	}
	if size > MaxCommandBytes {
		return fault.Invalid("the encoder of modality %q: a command of %d bytes: at most %d are possible", e.Modality, size, MaxCommandBytes)
	}
	return nil
}
