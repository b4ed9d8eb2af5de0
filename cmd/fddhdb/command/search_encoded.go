package command

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/encoder"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/ingest"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/run"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
)

// checkInputs refuses what no encoder can read.
func checkInputs(texts, files []string) error {
	for _, text := range texts {
		if strings.TrimSpace(text) == "" || !utf8.ValidString(text) {
			return exit.Usagef("--text %q: words in UTF-8 are expected", text)
		}
	}
	for _, file := range files {
		info, err := os.Stat(file)
		switch {
		case err != nil:
			return exit.Failedf("--picture: %w", err)
		case !info.Mode().IsRegular():
			return exit.Usagef("--picture %q: it is not a regular file", file)
		case strings.ContainsAny(file, "\r\n"):
			return exit.Usagef("--picture %q: an encoder reads a path a line: rename the file", file)
		}
	}
	return nil
}

// chooseEncoder chooses the encoder of the collection for the queries, and with it --from.
func (o *searching) chooseEncoder() (chosen *db.Encoder, err error) {
	flag, input := "--text", db.InputText
	if len(o.picture) > 0 {
		flag, input = "--picture", db.InputFile
	}
	if o.At != nil {
		return nil, exit.Failedf("%s: %s runs no encoders: search by --vector or --vectors: %w", flag, o.At.Program,
			errors.ErrUnsupported)
	}
	if o.from != "" {
		if _, err := o.FindModality("--from", o.from); err != nil {
			return nil, err
		}
	}
	var names []string
	for i, e := range o.Schema.Encoders {
		if e.Input == input && (o.from == "" && !e.Standby || o.from == e.Modality) {
			chosen = &o.Schema.Encoders[i]
			names = append(names, e.Modality)
		}
	}
	switch {
	case o.turns:
		return nil, exit.Usagef("--turns: collection %q compares vectors, and only codes by pdq have turns", o.Collection.Name())
	case len(names) == 0:
		if len(o.texts) == 1 && o.from == "" {
			if o.labels = api.CodeOfWords(o.Ctx, o.Collection, o.texts[0]); o.labels != nil {
				return nil, nil
			}
		}
		at := o.from
		if at == "" {
			at = o.Schema.Modalities[0].Name
		}
		return nil, exit.Usagef("%s: collection %q has no encoder of input %s: %s --set %s=COMMAND stores one",
			flag, o.Collection.Name(), input, ingest.EncoderVerb(o.Dir, o.Collection.Name(), input), at)
	case len(names) > 1:
		return nil, exit.Usagef("%s: several modalities have an encoder of input %s, %s: say which with --from NAME", flag, input, strings.Join(names, ", "))
	}
	o.from = chosen.Modality
	return chosen, nil
}

// eachEncoded calls f with the vectors that an encoder makes of inputs, all at once. In a shell the program
// stays running for the next search.
func eachEncoded(v *run.Verb, of *db.Encoder, inputs []string, m db.Modality, f func(queryName,
	db.Query) error) error {
	p, err := ingest.Trusted(v.Dir, v.Collection.Name(), of)
	if err != nil {
		return err
	}
	lines := slices.Clone(inputs)
	for i, file := range inputs { // the program runs in another folder
		if of.Input != db.InputFile {
			break
		}
		if lines[i], err = filepath.Abs(file); err != nil {
			return err
		}
	}
	var vectors []encoder.Vector
	if v.Session.Has(v.Dir) {
		vectors, err = v.Session.Encoder(p).Encode(v.Ctx, m.Dim, lines)
		if err != nil && v.Ctx.Err() != nil {
			v.Session.EndEncoders() // an interrupt ends the program, too
		}
	} else {
		vectors, err = encoder.Run(v.Ctx, p, m.Dim, lines)
	}
	for i := 0; err == nil && i < len(inputs); i++ {
		err = f(inputs[i], db.Query{From: m.Name, Vector: vectors[i].Dense, Sparse: vectors[i].Sparse})
	}
	return err
}
