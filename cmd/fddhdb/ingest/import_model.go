package ingest

import (
	"bufio"
	"errors"
	"os"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/run"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
)

// importModel makes a space with the model of a file.
func importModel(v *run.Verb, path string) error {
	if err := v.AloneOf(); err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		var p *os.PathError
		if errors.As(err, &p) {
			err = p.Err
		}
		return exit.Failedf("--model %s: %w", path, err)
	}
	defer f.Close()
	return v.Change(func() error {
		t, err := v.Collection.ImportModel(v.Ctx, bufio.NewReader(f),
			db.ImportModelOptions{Progress: v.Progress().Report})
		switch {
		case errors.Is(err, db.ErrInvalid): // the command line is right
			return exit.Failedf("--model %s: %s", path, exit.Reason(err.Error()))
		case err != nil:
			return err
		}
		return v.Tell(t, "space %d of collection %s: codes of %d bits, by a model that %s with %s taught; %s have codes\n%s",
			t.Space, v.Collection.Name(), t.Bits, term.Plural(t.TrainItems, "item", "items"),
			term.Plural(t.Labels, "label", "labels"), term.Plural(t.Items, "item", "items"),
			v.SpaceHint(t.Space, t.Active))
	})
}
