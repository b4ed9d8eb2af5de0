package command

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/source"
	"github.com/fddhdb/fddhdb/db"
)

// encodes reports whether an encoder makes the vectors of the queries.
func (o *searchOptions) encodes() bool { return len(o.texts)+len(o.images) > 0 }

// checkInputs refuses what no encoder can read.
func (o *searchOptions) checkInputs() error {
	for _, text := range o.texts {
		switch {
		case strings.TrimSpace(text) == "":
			return exit.Usagef("--text %q: words are missing", text)
		case !utf8.ValidString(text):
			return exit.Usagef("--text %q: it is not UTF-8", text)
		}
	}
	for _, file := range o.images {
		info, err := os.Stat(file)
		switch {
		case err != nil:
			return exit.Failedf("--image: %w", err)
		case !info.Mode().IsRegular():
			return exit.Usagef("--image %q: it is not a regular file", file)
		case strings.ContainsAny(file, "\r\n"):
			return exit.Usagef("--image %q: an encoder reads a path a line: rename the file", file)
		}
	}
	return nil
}

// chooseEncoder chooses the encoder of the collection for the queries, and with it --from.
func (o *searchOptions) chooseEncoder(c *db.Collection) error {
	flag, input := "--text", db.InputText
	if len(o.images) > 0 {
		flag, input = "--image", db.InputFile
	}
	schema, err := c.Schema()
	if err != nil {
		return err
	}
	if o.from != "" {
		if _, err := source.FindModality(c.Name(), schema, "--from", o.from); err != nil {
			return err
		}
	}
	all, err := c.Encoders()
	if err != nil {
		return err
	}
	var names []string
	for i, e := range all {
		if e.Input == input && (o.from == "" || o.from == e.Modality) {
			o.encoder = &all[i]
			names = append(names, e.Modality)
		}
	}
	switch {
	case len(schema.Modalities) == 0:
		return exit.Usagef("%s: the items of collection %q bring their codes, which no encoder makes: search by --code or --key", flag, c.Name())
	case len(names) == 0:
		at := o.from
		if at == "" {
			at = schema.Modalities[0].Name
			return exit.Usagef("%s: collection %q has no encoder of input %s: %s --set %s=COMMAND stores one", flag, c.Name(), input, encoderVerb(o.dir, c.Name(), input), at)
		}
		return exit.Usagef("%s: modality %q has no encoder of input %s: %s --set %s=COMMAND stores one", flag, at, input, encoderVerb(o.dir, c.Name(), input), at)
	case len(names) > 1:
		return exit.Usagef("%s: several modalities have an encoder of input %s, %s: say which with --from NAME", flag, input, strings.Join(names, ", "))
	}
	o.from = o.encoder.Modality
	return nil
}

// queryEncoder answers the queries by the vectors that the encoder makes, all at once.
func (e *env) queryEncoder(ctx context.Context, o *searchOptions, m db.Modality, answer func(queryName, db.Query) error) (err error) {
	inputs := o.texts
	if len(o.images) > 0 {
		inputs = make([]string, len(o.images))
		for i, file := range o.images { // the program runs in another folder
			if inputs[i], err = filepath.Abs(file); err != nil {
				return err
			}
		}
	}
	vectors, err := e.encode(ctx, o.dir, o.collection, o.encoder, m.Dim, inputs)
	if err != nil {
		return err
	}
	for i, name := range append(o.texts, o.images...) {
		if err := answer(name, db.Query{From: m.Name, Vector: vectors[i].Dense, Sparse: vectors[i].Sparse}); err != nil {
			return err
		}
	}
	return nil
}

// errEnough ends the reading of queries.
var errEnough = errors.New("enough")

// queryStdin answers the queries of the standard input.
func (e *env) queryStdin(o *searchOptions, m db.Modality, answer func(queryName, db.Query) error) error {
	if e.session != nil {
		return exit.Usagef("--vectors -: the standard input is that of the shell: give a file, or --vector")
	}
	rows := 0
	err := source.EachQuery(m, e.stdin, func(row int, q db.Query) error {
		if rows = row + 1; o.hasRow && row != o.row {
			return nil
		}
		if err := answer(row, q); err != nil {
			return exit.AtRow(err, "standard input", row)
		}
		if err := e.Stdout.Flush(); err != nil || !o.hasRow {
			return err
		}
		return errEnough
	})
	switch {
	case err == errEnough:
		return nil
	case err == nil && o.hasRow:
		return exit.Usagef("--row %d: standard input has %d rows, counted from 0", o.row, rows)
	}
	return err
}
