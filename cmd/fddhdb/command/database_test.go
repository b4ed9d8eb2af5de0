package command

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/clitest"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/shell"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
	"github.com/fddhdb/fddhdb/db/attach"
)

func TestLocked(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a.db")
	d := clitest.Must(db.Open(dir, nil))(t)
	defer d.Close()
	says(t, exit.Failed, "database is in use: "+dir, "count", dir, "--no-attach")
	says(t, exit.Failed, "end that process", "count", dir, "--no-attach")
	says(t, exit.Failed, "back it up from that process, by DB.Backup", "backup", dir, dir+".backups",
		"--no-attach")
}

// If the function that WithNew calls fails, WithNew removes the folders that it has created,
// and nothing else.
func TestWithNew(t *testing.T) {
	e, parent := newTestEnv(), t.TempDir()
	broken := errors.New("broken")
	fail := func(api.Database) error { return broken }
	absent, empty, exists := filepath.Join(parent, "absent"), filepath.Join(parent, "empty"),
		filepath.Join(parent, "exists")
	clitest.Check(t, os.Mkdir(empty, 0o777))
	must(t, "init", exists, "--modality", "image:2")
	for _, dir := range []string{absent, empty, exists} {
		if err := e.WithNew(t.Context(), dir, fail); !errors.Is(err, broken) {
			t.Errorf("%s: %v", dir, err)
		}
	}
	if _, err := os.Stat(absent); !os.IsNotExist(err) {
		t.Errorf("the new folder: %v", err)
	}
	if entries, err := os.ReadDir(empty); err != nil || len(entries) > 0 {
		t.Errorf("the empty folder: %v, %v", entries, err)
	}
	if got := must(t, "count", exists); got != "0\n" {
		t.Errorf("the database that existed: %q", got)
	}
}

// Nobody works on a database before what creates it has succeeded: it would go with what others store.
func TestWithNewIsAlone(t *testing.T) {
	dir, broken := filepath.Join(t.TempDir(), "a.db"), errors.New("broken")
	err := newTestEnv().WithNew(t.Context(), dir, func(api.Database) error {
		a, err := attach.Open(t.Context(), dir, attach.Options{Wait: 50 * time.Millisecond})
		if !errors.Is(err, db.ErrLocked) {
			t.Errorf("another process: %v, %v", a, err)
		}
		return broken
	})
	if !errors.Is(err, broken) {
		t.Error(err)
	}
}

// A database that another process has created in the same empty folder meanwhile stays.
func TestCreateLeavesTheDatabaseOfAnotherProcess(t *testing.T) {
	dir, broken := filepath.Join(t.TempDir(), "a.db"), errors.New("broken")
	must(t, "init", dir, "--modality", "image:2") // after the folder was found empty
	fail := func(api.Database) error { return broken }
	if err := newTestEnv().Create(t.Context(), dir, false, true, fail); !errors.Is(err, broken) {
		t.Error(err)
	}
	if got := must(t, "count", dir); got != "0\n" {
		t.Errorf("the database of another process: %q", got)
	}
}

// Beside the process that owns a database verbs work on it, but for those that need it for themselves.
func TestPlaceOfAnotherProcess(t *testing.T) {
	f := newFixture(t, 20, false)
	e := newTestEnv()
	clitest.Check(t, e.OpenSession(t.Context(), f.db, false))
	defer e.CloseSession()
	e.Session.Place.Own = nil
	s := shell.New(host{e}, e.Printer, e.Stdin, nil, nil, term.ModeTable)
	for _, line := range []string{"verify --acknowledge", "repair"} {
		err := s.Run(t.Context(), line)
		if exit.Code(err) != exit.Failed || !strings.Contains(exit.Message(err),
			line+" needs the folder for itself: run it where the folder is, when no other process has that open") {
			t.Errorf("%s: %v", line, err)
		}
	}
	for _, line := range []string{"count", "verify", "put x --labels a", "backup " + f.path("backups")} {
		if err := s.Run(t.Context(), line); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
}
