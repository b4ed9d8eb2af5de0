package command

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/encoder"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/shell"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
)

// program returns how the encoder of a database in dir is run: in the folder that holds the
// database, from wherever it is searched.
func program(dir string, of *db.Encoder) (encoder.Program, error) {
	folder, err := encoder.Folder(dir)
	return encoder.Program{Modality: of.Modality, Command: of.Command, Dir: filepath.Dir(folder)}, err
}

// checkTrust refuses an encoder that the user has neither set nor trusted.
func checkTrust(dir, collection string, of *db.Encoder) error {
	trusts, err := encoder.Trusts(dir, of.Command)
	if err != nil || trusts {
		return err
	}
	return exit.Failedf("the encoder of %s is not run, as you have not set it here: %s; if it may run, as you, on this machine: %s --trust %s",
		of.Modality, term.Plain(quoted(of.Command)), encoderVerb(dir, collection, of.Input), of.Modality)
}

// quoted returns words as a line of the shell.
func quoted(words []string) string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = shell.QuoteWord(w)
	}
	return strings.Join(all, " ")
}

// encoderVerb returns the command line that works on the encoders of one input.
func encoderVerb(dir, collection string, input db.EncoderInput) string {
	line := "fddhdb encoder " + dir
	if collection != "main" {
		line += " --collection " + collection
	}
	if input != db.InputText {
		line += fmt.Sprintf(" --input %s", input)
	}
	return line
}

// encode makes vectors of inputs by an encoder of the database in dir. In a shell the program stays
// running for the next search.
func (e *env) encode(ctx context.Context, dir, collection string, of *db.Encoder, dim int, inputs []string) ([]encoder.Vector, error) {
	if err := checkTrust(dir, collection, of); err != nil {
		return nil, err
	}
	p, err := program(dir, of)
	if err != nil {
		return nil, err
	}
	if !e.session.has(dir) {
		return encoder.Run(ctx, p, dim, inputs)
	}
	running := e.session.encoder(p)
	vectors, err := running.Encode(ctx, dim, inputs)
	if err != nil && ctx.Err() != nil {
		e.session.endEncoders() // an interrupt ends the program, too
	}
	return vectors, err
}

// encoder returns the encoder of a program, which the session keeps.
func (s *session) encoder(p encoder.Program) *encoder.Encoder {
	for _, e := range s.encoders {
		if e.Modality == p.Modality && e.Dir == p.Dir && slices.Equal(e.Command, p.Command) {
			return e
		}
	}
	s.encoders = append(s.encoders, encoder.New(p))
	return s.encoders[len(s.encoders)-1]
}

// endEncoders ends the programs that the session keeps.
func (s *session) endEncoders() {
	for _, e := range s.encoders {
		e.Close()
	}
	s.encoders = nil
}
