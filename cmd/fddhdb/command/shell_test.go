package command

import (
	"bytes"
	"context"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/clitest"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/run"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/shell"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
)

// runScript runs a script in the shell on a database.
func runScript(t *testing.T, ctx context.Context, dir, script string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = runLine(ctx, []string{dir},
		&run.Env{Printer: term.NewPrinter(&out, &errs), Stdin: strings.NewReader(script)})
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
	if code := runLine(ctx, []string{f.db}, &run.Env{Printer: term.NewPrinter(io.Discard, &errs),
		Stdin: r}); code != exit.Failed || !strings.Contains(errs.String(), "interrupted") {
		t.Errorf("exit code %d, %q", code, &errs)
	}
	must(t, "put", f.db, "x", "--labels", "") // no other process has it open
}

// If a database was closed for a verb and is then missing, the next verb says so. It is
// found again when it is back.
func TestSessionIsOpenedAgain(t *testing.T) {
	f := newFixture(t, 20, false)
	e := newTestEnv()
	clitest.Check(t, e.OpenSession(t.Context(), f.db, false))
	defer e.CloseSession()
	s := shell.New(host{e}, e.Printer, e.Stdin, nil, nil, term.ModeTable)
	away := f.path("away")
	err := e.WhileClosed(t.Context(), f.db, "repair", func() error { return os.Rename(f.db, away) })
	if err == nil {
		t.Error("the database is gone, and nobody says so")
	}
	if err := s.Run(context.Background(), "count"); exit.Code(err) != exit.Usage {
		t.Errorf("count without a database: %v", err)
	}
	clitest.Check(t, os.Rename(away, f.db))
	if err := s.Run(context.Background(), "count"); err != nil {
		t.Error(err)
	}
}

// sessionShell returns a shell on a database.
func sessionShell(t *testing.T, dir string) *shell.Shell {
	t.Helper()
	e := newTestEnv()
	clitest.Check(t, e.OpenSession(t.Context(), dir, true))
	t.Cleanup(func() {
		if err := e.CloseSession(); err != nil {
			t.Error(err)
		}
	})
	return shell.New(host{e}, e.Printer, e.Stdin, nil, nil, term.ModeTable)
}

// TestCompletion: the shell completes words, and bash, zsh and fish get those that no database has.
func TestCompletion(t *testing.T) {
	f := newFixture(t, 40, false)
	must(t, "init", f.db, "--collection", "hashes", "--codes", "8", "--field", "year:int:index")
	must(t, "put", f.db, "x", "--collection", "hashes", "--code", "00", "--labels", "a b,it's")
	clitest.WriteFile(t, f.path("with blank.npy"), "")
	t.Chdir(f.dir)
	s := sessionShell(t, f.db)
	for _, c := range []struct{ line, want string }{
		{"cou", "count "},
		{".sc", ".schema "},
		{"hel", "help "},
		{"help sea", "search "},
		{".help .q", ".quit "},
		{".timer ", "off |on "},
		{".mode j", "json |jsonl "},
		{".use ", "hashes |main "},
		{".quit ", ""},
		{".nosuch ", ""},
		{"nosuch ", ""},
		{"count --js", "--json "},
		{"count --json --js", ""},
		{"count --mode c", "csv "},
		{"count --mode=c", "--mode=csv "},
		{"search --from ", "image |text "},
		{"search --to=", "--to=image |--to=text "},
		{"search --from image --rerank a", "asymmetric |auto "},
		{"search --include labels,", "labels,fields |labels,payload |labels,vectors "},
		{"search --include l", "labels "},
		{"search --vectors te", "text.npy "},
		{"search --vectors w", `"with blank.npy" `},
		{"eval --vectors ", "image=|text="},
		{"eval --vectors image=l", "image=labels.txt "},
		{"eval --vectors image=with", `"image=with blank.npy" `},
		{"train --map text=l", "text=linear "},
		{"train --map image=rbf --ma", "--map "},
		{"export --codes a", "a.db/"},
		{"scan --limit ", ""},
		{"get 2", "2 |20 |21 |22 |23 |24 |25 |26 |27 |28 |29 "},
		{"delete --where x 2", "2 |20 |21 |22 |23 |24 |25 |26 |27 |28 |29 "},
		{"search --key 2", "2 |20 |21 |22 |23 |24 |25 |26 |27 |28 |29 "},
		{"put k --labels label0,lab", "label0,label1 |label0,label2 |label0,label3 "},
		{"put k --collection hashes --field ", "year="},
		{"put k --collection hashes --labels ", `"a b" |"it's" `},
		{"backup a", "a.db/"},
		{"restore x a", "a.db/"},
		{"completion f", "fish "},
		{".read l", "labels.txt "},
		{"count \\", ""},
		{"", strings.Join(func() (all []string) {
			root := rootCommand(newTestEnv())
			shell.AddDefaultVerbs(root)
			for _, n := range shell.VerbNames(root) {
				all = append(all, n+" ")
			}
			for _, d := range shell.DotCommands() {
				all = append(all, d.Name+" ")
			}
			slices.Sort(all)
			return all
		}(), "|")},
	} {
		head, words, tail := s.Complete(c.line+"END", len([]rune(c.line)))
		got := strings.Join(words, "|")
		if got != c.want || tail != "END" || !strings.HasPrefix(c.line, head) {
			t.Errorf("%s: %q behind %q, want %q", c.line, got, head, c.want)
		}
	}
	for line, want := range map[string]string{"count --mode": "table csv json jsonl :4",
		"update a.db --teacher": "auto labels modality self :4", "search a.db --from": ":0", "get a.db": ":0"} {
		code, out, _ := do(t, append(strings.Fields("__complete "+line), "")...)
		if got := strings.Join(strings.Split(strings.TrimSpace(out), "\n"), " "); code != 0 || got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

// The shell completes the value of every flag of every verb, and its arguments, without a warning.
func TestShellCompletesEveryFlag(t *testing.T) {
	f := newFixture(t, 40, true)
	var out, warnings bytes.Buffer
	e := &run.Env{Printer: term.NewPrinter(&out, &warnings), Stdin: strings.NewReader("")}
	clitest.Check(t, e.OpenSession(t.Context(), f.db, true))
	defer func() {
		if err := e.CloseSession(); err != nil {
			t.Error(err)
		}
	}()
	s := shell.New(host{e}, e.Printer, e.Stdin, nil, nil, term.ModeTable)
	for _, cmd := range rootCommand(e).Commands() {
		lines := []string{cmd.Name() + " ", cmd.Name() + " --"}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			for _, value := range []string{" ", "=", " image=", "=image="} {
				lines = append(lines, cmd.Name()+" --"+f.Name+value)
			}
		})
		for _, line := range lines {
			if s.Complete(line, len(line)); warnings.Len() > 0 {
				t.Errorf("%s: %s", line, warnings.String())
				warnings.Reset()
			}
		}
	}
	if _, words, _ := s.Complete("search --space ", 15); !slices.Equal(words, []string{"1 "}) {
		t.Errorf("spaces: %q", words)
	}
}

// TestCompletionScripts: every script is printed, and what is typed is evaluated only after a look at it.
func TestCompletionScripts(t *testing.T) {
	for shell, evaluation := range evaluations {
		if out := must(t, "completion", shell); !strings.Contains(out, evaluation.ours) ||
			strings.Contains(strings.Replace(out, evaluation.ours, "", 1), evaluation.theirs) {
			t.Errorf("%s evaluates what is typed", shell)
		}
	}
}
