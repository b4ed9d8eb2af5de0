package command

import (
	"bytes"
	"context"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/shell"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
)

// runScript runs a script in the shell on a database.
func runScript(t *testing.T, ctx context.Context, dir, script string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(ctx, []string{dir}, &env{Printer: term.NewPrinter(&out, &errs), stdin: strings.NewReader(script)})
	return code, out.String(), errs.String()
}

func TestScriptInterrupted(t *testing.T) {
	f := newFixture(t, 20, false)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	code, stdout, stderr := runScript(t, ctx, f.db, "\ncount\ncount\n")
	if code != exit.Failed || stdout != "" || stderr != "fddhdb: line 1: interrupted\n" {
		t.Errorf("exit code %d, %q, %q", code, stdout, stderr)
	}
}

// A script that does not go on does not keep the shell from ending and closing its
// database.
func TestScriptThatWaits(t *testing.T) {
	f := newFixture(t, 4, false)
	ctx, cancel := context.WithCancel(context.Background())
	r, w := io.Pipe()
	defer w.Close()
	go func() {
		io.WriteString(w, "count\n")
		cancel()
	}()
	var errs bytes.Buffer
	if code := run(ctx, []string{f.db}, &env{Printer: term.NewPrinter(io.Discard, &errs), stdin: r}); code != exit.Failed || !strings.Contains(errs.String(), "interrupted") {
		t.Errorf("exit code %d, %q", code, &errs)
	}
	must(t, "put", f.db, "x") // no other process has it open
}

// If a database was closed for a verb and is then missing, the next verb says so. It is
// found again when it is back.
func TestSessionIsOpenedAgain(t *testing.T) {
	f := newFixture(t, 20, false)
	e := newTestEnv()
	if err := e.openSession(f.db, false); err != nil {
		t.Fatal(err)
	}
	defer e.closeSession()
	s := shell.New(shellHost{e}, e.Printer, e.stdin, nil, nil, term.ModeTable)
	away := f.path("away")
	err := e.whileClosed(f.db, func() error { return os.Rename(f.db, away) })
	if err == nil {
		t.Error("the database is gone, and nobody says so")
	}
	if err := s.Run(context.Background(), "count"); exit.Code(err) != exit.Usage {
		t.Errorf("count without a database: %v", err)
	}
	if err := os.Rename(away, f.db); err != nil {
		t.Fatal(err)
	}
	if err := s.Run(context.Background(), "count"); err != nil {
		t.Error(err)
	}
}
