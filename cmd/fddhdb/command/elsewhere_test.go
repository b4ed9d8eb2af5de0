package command

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/clitest"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/run"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
)

// Another program has the verbs on its own database, without DIR, and its name in their texts.
func TestVerbsOfAnotherProgram(t *testing.T) {
	files := vfs.NewMem()
	run := func(args ...string) (out, failed string, code int) {
		t.Helper()
		at := &run.Elsewhere{Program: "other", Place: "the other one",
			Open: func(context.Context) (api.Database, error) {
				d, err := db.Open("d", &db.Options{FS: files})
				if err != nil {
					return nil, err
				}
				return api.Folder(d, nil), nil
			}}
		var stdout, stderr bytes.Buffer
		p := term.NewPrinter(&stdout, &stderr)
		root := &cobra.Command{Use: "other", SilenceUsage: true, SilenceErrors: true}
		verbs := AddVerbs(at, root, p, strings.NewReader(""))
		if verbs["search"] == nil || verbs["scan"] != nil || verbs["backup"] != nil {
			t.Fatal(verbs)
		}
		root.SetArgs(args)
		root.SetOut(p.Stdout)
		err := p.Scope(root.Execute)
		if err != nil {
			failed = at.Words(exit.Message(err))
		}
		return stdout.String(), failed, exit.Code(err)
	}
	for _, c := range []struct {
		args, out, failed string
		code              int
	}{
		{"count", "", `there is no collection "main", nor any other: init creates one`, 2},
		{"init --codes 16 --field year:int", "created collection main in the other one: codes of 16 bits", "", 0},
		{"put a --code 0102", "a\n", "", 0},
		{"put", "", "put needs the key of an item: other put KEY", 2},
		{"search --code 0102", "code 0102", "", 0},
		{"activate", "", "other models lists them", 2},
		{"init --collection learned --modality image:2", "created collection learned", "", 0},
		{"models --collection learned", "no model yet: run other train\n", "", 0},
		{"search --collection learned --code 0102", "", "run other train", 1},
		{"search --collection learned --text x", "", "other runs no encoders", 1},
		{"collections", "learned", "", 0},
		{"count", "1\n", "", 0},
	} {
		out, failed, code := run(strings.Fields(c.args)...)
		if code != c.code || !strings.Contains(out, c.out) || !strings.Contains(failed, c.failed) ||
			strings.Contains(out+failed, "fddhdb") {
			t.Errorf("%s: %d, %q, %q", c.args, code, out, failed)
		}
	}
	out, _, _ := run("import", "--help")
	if !strings.Contains(out, "other import (FILE | FOLDER | ") || strings.Contains(out, "fddhdb import") {
		t.Error(out)
	}
}

// unmarked is a database that keeps no marks, as a cluster.
type unmarked struct{ api.Database }

func (unmarked) Mark(context.Context, string) ([]byte, error) { return nil, errors.ErrUnsupported }

func (d unmarked) NewBatch() api.Batch { return unmarkedBatch{d.Database.NewBatch()} }

type unmarkedBatch struct{ api.Batch }

func (unmarkedBatch) Mark(string, []byte) error { return errors.ErrUnsupported }

// Pictures can be imported where nothing keeps marks. There --sync is refused: nothing knows the other
// folders of the collection.
func TestPicturesWithoutMarks(t *testing.T) {
	folder, _ := album(t)
	memory, err := db.OpenMemory(nil)
	clitest.Check(t, err)
	t.Cleanup(func() { clitest.Check(t, memory.Close()) })
	at := &run.Elsewhere{Program: "other", Place: "the other one",
		Open: func(context.Context) (api.Database, error) {
			return unmarked{keptOpen{api.Folder(memory, nil)}}, nil
		}}
	run := func(args ...string) (string, error) {
		var stdout, stderr bytes.Buffer
		p := term.NewPrinter(&stdout, &stderr)
		root := &cobra.Command{Use: "other", SilenceUsage: true, SilenceErrors: true}
		AddVerbs(at, root, p, strings.NewReader(""))
		root.SetArgs(args)
		root.SetOut(p.Stdout)
		err := p.Scope(root.Execute)
		return stdout.String(), err
	}
	_, err = run("init", "--hash", "phash")
	clitest.Check(t, err)
	out, err := run("import", folder)
	if err != nil || !strings.Contains(out, "imported 8 items") {
		t.Error(out, err)
	}
	if _, err = run("import", folder, "--sync"); !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
}

// keptOpen is a database that stays open after Close.
type keptOpen struct{ api.Database }

func (keptOpen) Close() error { return nil }
