package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/clitest"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/run"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/shell"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// do runs a command line and returns its code and output.
func do(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = Main(args, strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

// says runs a command line that has to end with a code, and to say something on stderr.
func says(t *testing.T, code int, want string, args ...string) {
	t.Helper()
	if got, _, stderr := do(t, args...); got != code || !strings.Contains(stderr, want) {
		t.Errorf("fddhdb %s: exit code %d, stderr %q, want %q", strings.Join(args, " "), got, stderr, want)
	}
}

// must runs a command line that has to succeed and returns its output.
func must(t *testing.T, args ...string) string {
	t.Helper()
	code, stdout, stderr := do(t, args...)
	if code != 0 || stderr != "" {
		t.Fatalf("fddhdb %s: exit code %d, stderr %q", strings.Join(args, " "), code, stderr)
	}
	return stdout
}

// mustJSON is must for one object on the output.
func mustJSON(t *testing.T, v any, args ...string) {
	t.Helper()
	out := must(t, append(args, "--json")...)
	if err := json.Unmarshal([]byte(out), v); err != nil {
		t.Fatalf("fddhdb %s: %v in %q", strings.Join(args, " "), err, out)
	}
}

// A fixture is a database of synthetic items of two modalities, and the files that it
// was made from.
type fixture struct{ dir, db, image, text, labels string }

func newFixture(t *testing.T, items int, train bool) fixture {
	t.Helper()
	f := fixture{dir: t.TempDir()}
	f.db = f.path("a.db")
	f.image, f.text, f.labels = f.path("image.npy"), f.path("text.npy"), f.path("labels.txt")
	data := synth.Pairs(synth.Config{Items: items, Seed: 2, Noise: 1})
	clitest.WriteNPY(t, f.image, data.Vectors[0])
	clitest.WriteNPY(t, f.text, data.Vectors[1])
	var b strings.Builder
	for _, set := range data.Labels {
		for _, l := range set {
			b.WriteString("label" + strconv.Itoa(int(l)))
		}
		b.WriteString("\n")
	}
	clitest.WriteFile(t, f.labels, b.String())
	must(t, "import", f.db, "--init", "--vectors", "image="+f.image, "--vectors", "text="+f.text, "--labels",
		f.labels)
	if train {
		must(t, "train", f.db, "--bits", "16", "--anchors", strconv.Itoa(min(items, 40)))
	}
	return f
}

// empty returns the names of a database and of files that are not there.
func empty(t *testing.T) fixture {
	f := fixture{dir: t.TempDir()}
	f.db = f.path("a.db")
	return f
}

func (f *fixture) path(name string) string { return filepath.Join(f.dir, name) }

func newTestEnv() *run.Env {
	return &run.Env{Printer: term.NewPrinter(&bytes.Buffer{}, &bytes.Buffer{}), Stdin: strings.NewReader("")}
}

// TestContract checks verbs and flags against the table of the contract.
func TestContract(t *testing.T) {
	root := rootCommand(newTestEnv())
	contract := map[string]string{
		"init":        "collection json modality codes hash field metric space-of shared",
		"import":      "collection json vectors codes pictures encoder folder-labels thumbnails sync texts text-column hash labels label-names keys fields merge on-error on-duplicate dry-run init index index-words items key-column label-column label-separator vector-column field-column model",
		"put":         "collection json vector picture thumbnails labels field",
		"get":         "collection json space",
		"delete":      "collection json where",
		"scan":        "collection json space where limit",
		"count":       "collection json where",
		"facets":      "collection json by where limit",
		"train":       "collection json bits anchors seed start sweeps method gamma features map mu delta rows label-embedding activate",
		"search":      "collection json space from to text words picture turns vectors vector row key code codes limit radius where rerank min-similarity include facets after recall explain",
		"eval":        "collection json space vectors labels truth where top plot",
		"reembed":     "collection json from to encoder query-encoder text-field pictures switch incomplete",
		"encoder":     "collection json set remove trust input replace",
		"encode":      "collection json space from vectors out",
		"export":      "collection json space codes keys labels label-names vectors items where model",
		"stats":       "collection json",
		"dups":        "collection json space where radius modality min-similarity recall keep connected pairs against limit after delete",
		"collections": "json",
		"compact":     "json",
		"verify":      "json deep",
		"bench":       "collection json space vectors from to codes k radius recall where queries",
		"version":     "json",
		"update":      "collection json space teacher grow-labels",
		"index":       "collection json modality recall drop",
		"reindex":     "collection json space",
		"activate":    "collection json space",
		"rollback":    "collection json space revision",
		"models":      "collection json space",
		"drop":        "collection json space",
		"backup":      "json collection index-only",
		"backups":     "json",
		"restore":     "json id before database",
		"prune":       "json keep dry-run",
		"alter":       "collection json add-modality add-field index index-words metric space-of rename-label",
		"repair":      "json dry-run",
		"explore":     "collection json address open pictures write",
		"serve": "json address tokens cert cert-key plain readonly max-k max-body rate timeout origin pictures mcp " +
			"child create",
		"mcp":    "collection json write",
		"health": "json",
		"python": "",
		"token":  "json name scope only remove list",
	}
	for _, verb := range shell.VerbNames(root) {
		if _, has := contract[verb]; !has && verb != "help" && verb != "completion" {
			t.Errorf("verb %s is not in the contract", verb)
		}
	}
	for verb, flags := range contract {
		cmd, rest, err := root.Find([]string{verb})
		if err != nil || len(rest) > 0 || cmd.Name() != verb {
			t.Errorf("there is no verb %s", verb)
			continue
		}
		for _, flag := range strings.Fields(flags) {
			if cmd.Flags().Lookup(flag) == nil {
				t.Errorf("%s has no flag --%s", verb, flag)
			}
		}
	}
	if root.Flags().Lookup("command") == nil || root.Flags().Lookup("readonly") == nil ||
		root.PersistentFlags().Lookup("mode") == nil {
		t.Error("the shell lacks one of -c, --readonly and --mode")
	}
	root.InitDefaultCompletionCmd()
	if cmd, _, err := root.Find([]string{"completion", "bash"}); err != nil || cmd.Name() != "bash" {
		t.Error("there is no verb completion")
	}
}

// TestVerbsAreDocumented checks that docs/SHELL.md has every verb in its table, and in the
// one of JSON every verb with --json.
func TestVerbsAreDocumented(t *testing.T) {
	text := clitest.Must(os.ReadFile(filepath.Join("..", "..", "..", "docs", "SHELL.md")))(t)
	verbs, fields := verbsInTable(string(text), "## Verbs\n"),
		verbsInTable(string(text), "## What scripts may rely on\n")
	for _, cmd := range rootCommand(newTestEnv()).Commands() {
		if verb := cmd.Name(); verb != "help" {
			if !verbs[verb] {
				t.Errorf("the table of verbs in docs/SHELL.md does not have %s", verb)
			}
			if cmd.Flags().Lookup("json") != nil && !fields[verb] {
				t.Errorf("the table of JSON in docs/SHELL.md does not have %s", verb)
			}
		}
	}
}

// verbsInTable returns the first words that stand as code in the first cells of the tables of
// a section.
func verbsInTable(text, heading string) map[string]bool {
	_, section, _ := strings.Cut(text, heading)
	section, _, _ = strings.Cut(section, "\n## ")
	verbs := map[string]bool{}
	for line := range strings.Lines(section) {
		row, is := strings.CutPrefix(line, "| ")
		if !is {
			continue
		}
		cell, _, _ := strings.Cut(row, " |")
		for i, part := range strings.Split(cell, "`") {
			if words := strings.Fields(part); i%2 == 1 && len(words) > 0 {
				verbs[words[0]] = true
			}
		}
	}
	return verbs
}

// TestHelp checks that every verb has a help text whose lines fit, and that it accepts
// the command lines of its examples.
func TestHelp(t *testing.T) {
	root := rootCommand(newTestEnv())
	for _, cmd := range append(root.Commands(), root) {
		if cmd.Name() == "help" {
			continue
		}
		if cmd.Long == "" || cmd.Example == "" || cmd.Short == "" {
			t.Errorf("%s lacks Long, Short or Example", cmd.Name())
		}
		for line := range strings.Lines(cmd.Long + "\n" + cmd.Example) {
			if len(strings.TrimSuffix(line, "\n")) > 88 || strings.Contains(line, "\t") {
				t.Errorf("%s: help does not fit: %q", cmd.Name(), line)
			}
		}
		for line := range strings.Lines(strings.ReplaceAll(cmd.Example, "\\\n", " ")) {
			if line = strings.TrimSpace(line); strings.HasPrefix(line, "fddhdb ") {
				checkExample(t, line)
			}
		}
	}
}

func checkExample(t *testing.T, line string) {
	line, _, _ = strings.Cut(line, " > ")
	line, _, _ = strings.Cut(line, " < ")
	words, _ := shell.SplitWords(line)
	cmd, args, err := rootCommand(newTestEnv()).Find(shell.Unquoted(words)[1:])
	if inShell := len(args) > 0 && strings.HasSuffix(args[0], ".db"); err != nil ||
		!cmd.HasParent() && !inShell {
		t.Errorf("%s: no verb: %v", line, err)
		return
	}
	if err := cmd.ParseFlags(args); err != nil {
		t.Errorf("%s: %v", line, err)
		return
	}
	if err := cmd.ValidateArgs(cmd.Flags().Args()); err != nil {
		t.Errorf("%s: %v", line, err)
	}
}

// An interrupt is an error that stores nothing.
func TestInterrupt(t *testing.T) {
	f := newFixture(t, 50, true)
	must(t, "backup", f.db, f.path("others"))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, args := range [][]string{
		{"import", f.db, "--vectors", "image=" + f.image},
		{"import", f.path("b.db"), "--init", "--vectors", "image=" + f.image},
		{"train", f.db},
		{"search", f.db, "--from", "text", "--to", "image", "--vectors", f.text},
		{"bench", f.db, "--from", "text", "--vectors", f.text},
		{"eval", f.db, "--vectors", "text=" + f.text, "--labels", f.labels},
		{"encode", f.db, "--from", "text", "--vectors", f.text, "--out", f.path("out.npy")},
		{"export", f.db, "--keys", f.path("out.txt")},
		{"put", f.db, "x", "--labels", "a"},
		{"delete", f.db, "1"},
		{"scan", f.db},
		{"update", f.db},
		{"reindex", f.db},
		{"index", f.db, "--modality", "text"},
		{"models", f.db},
		{"activate", f.db, "--space", "1"},
		{"rollback", f.db},
		{"drop", f.db, "--collection", "main"},
		{"backup", f.db, f.path("backups")},
		{"backups", f.path("others")},
		{"verify", f.path("others")},
		{"restore", f.path("others"), f.path("b.db")},
		{"prune", f.path("others"), "--keep", "1"},
	} {
		var out, errs bytes.Buffer
		e := &run.Env{Printer: term.NewPrinter(&out, &errs), Stdin: strings.NewReader("")}
		if code := runLine(ctx, args, e); code != exit.Failed ||
			!strings.HasSuffix(errs.String(), "interrupted\n") {
			t.Errorf("%s: exit code %d, %q", args[0], code, errs.String())
		}
	}
	if got := must(t, "count", f.db); got != "50\n" {
		t.Errorf("count afterwards: %s", got)
	}
	for _, name := range []string{"b.db", "out.npy", "out.txt", "out.svg", "out.html", "out.png", "backups"} {
		if _, err := os.Stat(f.path(name)); err == nil {
			t.Errorf("%s is there", name)
		}
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("disk full") }

// Lost output is a failure.
func TestBrokenOutput(t *testing.T) {
	var errs bytes.Buffer
	if code := Main([]string{"version"}, strings.NewReader(""), brokenWriter{}, &errs); code != exit.Failed {
		t.Errorf("exit code %d", code)
	}
	if got, want := errs.String(), "fddhdb: write the output: disk full\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Verbs keep no state between runs; a shell depends on that.
func TestNoState(t *testing.T) {
	e := newTestEnv()
	first, second := rootCommand(e), rootCommand(e)
	flag := func(root *cobra.Command) string {
		cmd, _, err := root.Find([]string{"scan"})
		clitest.Check(t, err)
		return cmd.Flags().Lookup("limit").Value.String()
	}
	cmd, _, err := first.Find([]string{"scan"})
	clitest.Check(t, err)
	clitest.Check(t, cmd.Flags().Set("limit", "3"))
	if flag(first) != "3" || flag(second) != "0" {
		t.Errorf("limits %s and %s", flag(first), flag(second))
	}
}

// Suggestions can be run, and no verb is suggested for another existing verb.
func TestVerbsElsewhere(t *testing.T) {
	verbs := shell.VerbNames(rootCommand(newTestEnv()))
	for word, verb := range verbsElsewhere {
		if slices.Contains(verbs, word) || !slices.Contains(verbs, verb) {
			t.Errorf("%s for %s", verb, word)
		}
	}
	for word, want := range map[string]string{"LS": "scan", "Query": "search", "serch": "search",
		"SEARCH": "search", "xyzzy": "", "gte": "get", "colections": "collections", "wiki.db": "", "x": ""} {
		if got := meant(word, verbs); got != want {
			t.Errorf("%s: %q, want %q", word, got, want)
		}
	}
}

func TestVersion(t *testing.T) {
	v := version(&debug.BuildInfo{
		Main: debug.Module{Version: "v1.2.3"},
		Settings: []debug.BuildSetting{
			{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.time", Value: "2026-01-02"},
			{Key: "vcs.modified", Value: "true"},
		},
	}, true)
	if v.Version != "v1.2.3" || v.Revision != "abc" || v.Time != "2026-01-02" || !v.Modified {
		t.Errorf("%+v", v)
	}
	if v := version(nil, false); v.Version != "unknown" || v.Go == "" || v.Kernel == "" {
		t.Errorf("%+v", v)
	}
}
