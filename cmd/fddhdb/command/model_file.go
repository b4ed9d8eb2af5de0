package command

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/outfile"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
)

// export --model and import --model carry a model from one database to another. They are ways of
// their own through verbs that are else about items.

// aloneOf refuses the flags of a verb that are given beside --model and are not about it.
func aloneOf(cmd *cobra.Command, about ...string) error {
	var others []string
	cmd.Flags().Visit(func(f *pflag.Flag) {
		for _, name := range append(about, "model", "collection", "json", "mode") {
			if f.Name == name {
				return
			}
		}
		others = append(others, "--"+f.Name)
	})
	if len(others) > 0 {
		return exit.Usagef("--model is about a model and not about items: %s does not go with it", strings.Join(others, ", "))
	}
	return nil
}

// exportedModel is what export --model --json prints.
type exportedModel struct {
	Space db.Space `json:"space"`
	Bits  int      `json:"bits"`
	Bytes int64    `json:"bytes"`
}

// exportModel writes the model of a space to a file.
func (e *env) exportModel(cmd *cobra.Command, o *exportOptions, dir string) error {
	if err := aloneOf(cmd, "space"); err != nil {
		return err
	}
	if o.json && o.model == outfile.Stdout {
		return exit.Usagef("%s: standard output cannot be the file and have the JSON of --json or --mode, too: leave one of them out", outfile.Stdout)
	}
	return e.lookAtCollection(dir, &o.common, func(_ *db.DB, c *db.Collection) error {
		stats, err := c.Stats()
		if err != nil {
			return err
		}
		files := outfile.NewSet(e.Stdout)
		defer files.Discard()
		f, err := files.Create(o.model)
		if err != nil {
			return err
		}
		n := &countingWriter{w: f}
		if err := c.ExportModel(cmd.Context(), n); err != nil {
			return err
		}
		if err := files.Commit(); err != nil {
			return err
		}
		done := fmt.Sprintf("exported the model of space %d: codes of %d bits, %s", stats.Space, stats.Bits, term.Size(n.n))
		switch {
		case o.json:
			return e.PrintJSON(exportedModel{stats.Space, stats.Bits, n.n})
		case o.model == outfile.Stdout:
			e.Notef("%s", done)
		default:
			e.Printf("%s\n", done)
		}
		return nil
	})
}

// A countingWriter passes bytes on to w. n is how many it has passed on.
type countingWriter struct {
	w io.Writer
	n int64
}

func (w *countingWriter) Write(b []byte) (int, error) {
	n, err := w.w.Write(b)
	w.n += int64(n)
	return n, err
}

// importModel makes a space with the model of a file.
func (e *env) importModel(cmd *cobra.Command, o *importOptions, dir string) error {
	if err := aloneOf(cmd); err != nil {
		return err
	}
	f, err := os.Open(o.model)
	if err != nil {
		var p *os.PathError
		if errors.As(err, &p) {
			err = p.Err
		}
		return exit.Failedf("--model %s: %w", o.model, err)
	}
	defer f.Close()
	bar := e.NewProgress()
	defer bar.End()
	return e.withCollection(dir, &o.common, func(_ *db.DB, c *db.Collection) error {
		t, err := c.ImportModel(cmd.Context(), bufio.NewReader(f), db.ImportModelOptions{Progress: bar.Report})
		bar.End()
		switch {
		case errors.Is(err, db.ErrInvalid): // the command line is right
			return exit.Failedf("--model %s: %s", o.model, exit.Reason(err.Error()))
		case err != nil:
			return err
		case o.json:
			return e.PrintJSON(t)
		}
		e.Printf("space %d of collection %s: codes of %d bits, by a model that %s with %s taught; %s have codes\n", t.Space, c.Name(), t.Bits,
			term.Plural(t.TrainItems, "item", "items"), term.Plural(t.Labels, "label", "labels"), term.Plural(t.Items, "item", "items"))
		e.Printf("%s\n", spaceHint(dir, c.Name(), t.Space, t.Active))
		return nil
	})
}
