//go:build linux

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	f := newField(os.Stdout)
	var cases string
	flag.BoolVar(&f.long, "long", false, "try all combinations, not a minute's sample")
	flag.Func("seed", "the seed `N` of random moments, places and orders; new, or nothing: a new one",
		f.setSeed)
	flag.IntVar(&f.jobs, "jobs", runtime.GOMAXPROCS(0), "commands at a time")
	flag.StringVar(&f.command, "command", "", "the built fddhdb to try; built from this checkout if empty")
	flag.StringVar(&f.parent, "dir", os.TempDir(), "the `folder` to work in, and to keep findings in")
	flag.StringVar(&cases, "run", "", "only the cases whose names match this `regexp`")
	flag.Parse()
	code, err := start(ctx, f, cases)
	if err != nil {
		fmt.Fprintln(os.Stderr, "field: "+err.Error())
		code = 1
	}
	os.Exit(code)
}

// start runs the cases in a mount namespace of their own, if that is permitted. It
// returns the exit code.
func start(ctx context.Context, f *field, cases string) (code int, err error) {
	only, err := regexp.Compile(cases)
	if err != nil {
		return 0, err
	}
	if code, done, err := inNamespace(ctx); done {
		return code, err
	}
	if f.seed == 0 {
		f.seed = 1 + rand.Uint64N(1<<32-1) // short to repeat
	}
	repeat := ""
	if f.long {
		repeat, f.few = " -long", 40
	}
	fmt.Fprintf(f.out, "field: seed %d (repeat it with%s -seed %d)\n", f.seed, repeat, f.seed)
	defer func() { err = errors.Join(err, f.close()) }()
	begin := time.Now()
	if err := f.prepare(ctx); err != nil {
		return 0, err
	}
	fmt.Fprintf(f.out, "field: databases made in %.1f s\n", time.Since(begin).Seconds())
	found, err := f.run(ctx, only)
	return min(found, 1), err
}

// A field is one run of the cases.
type field struct {
	command string // the path of the built fddhdb
	parent  string // folder that holds root and the kept findings
	out     io.Writer
	seed    uint64
	long    bool
	jobs    int // commands at a time

	budget time.Duration // time for the scenes of a short run together, without the making of their databases
	grace  time.Duration // how long a verb may go on after a signal
	more   time.Duration // how much longer a verb may take on damaged files
	few    int           // findings that end a scene, as they have to be mended first

	root   string   // folder of all work; removed in the end
	kept   string   // the folder of findings; made for the first one
	env    []string // further variables of every command
	stocks *stocks
}

// A scene is one kind of condition to try verbs under.
type scene struct {
	name  string
	share float64 // share of the time of a short run
	run   func(ctx context.Context, t *trial) error
}

func (f *field) scenes() []scene {
	return []scene{
		{"every verb", .1, everyVerb},
		{"full disk: a life", .16, fullDiskLife},
		{"full disk: every verb", .12, fullDiskVerbs},
		{"damage", .2, damage},
		{"odd files", .1, oddFiles},
		{"signals", .16, signals},
		{"limits", .1, limits},
		{"dev full", .06, devFull},
		{"two processes", .1, twoProcesses},
		{"clock", .05, clocks},
		{"slow disk", .05, slowDisk},
	}
}

// newField returns a run with the limits that the documents promise.
func newField(out io.Writer) *field {
	return &field{out: out, budget: 50 * time.Second, grace: 5 * time.Second, more: 10 * time.Second, few: 6}
}

// setSeed sets the seed from a value of the flag -seed.
func (f *field) setSeed(s string) (err error) {
	if s != "new" {
		f.seed, err = strconv.ParseUint(s, 10, 64)
	}
	return err
}

// prepare makes what the scenes need. close removes it.
func (f *field) prepare(ctx context.Context) (err error) {
	if f.root, err = os.MkdirTemp(f.parent, "field-"); err != nil {
		return err
	}
	f.env = append(f.env, "XDG_STATE_HOME="+filepath.Join(f.root, "state")) // encoders that are trusted
	if f.command == "" {
		f.command = filepath.Join(f.root, "fddhdb")
		if err := build(ctx, f.command); err != nil {
			return err
		}
	}
	if f.command, err = filepath.Abs(f.command); err != nil {
		return err
	}
	if f.stocks, err = newStocks(ctx, f); err != nil {
		return fmt.Errorf("the databases to try cannot be made: %w", err)
	}
	return nil
}

func (f *field) close() error { return os.RemoveAll(f.root) }

// run runs the scenes whose names match only, and prints a table of them, also if ctx
// ends. It returns the number of findings.
func (f *field) run(ctx context.Context, only *regexp.Regexp) (findings int, err error) {
	var trials []*trial
	for _, s := range f.scenes() {
		if !only.MatchString(s.name) || ctx.Err() != nil {
			continue
		}
		t := &trial{f: f, scene: s, began: time.Now()}
		if !f.long {
			t.until = t.began.Add(time.Duration(s.share * float64(f.budget)))
		}
		if err := s.run(ctx, t); err != nil {
			t.skipped = err.Error()
		}
		t.took = time.Since(t.began)
		trials = append(trials, t)
	}
	return f.report(trials), ctx.Err()
}

// build builds the command into path, with the modules that a release has.
func build(ctx context.Context, path string) error {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}",
		"github.com/fddhdb/fddhdb").Output()
	if err != nil {
		return fmt.Errorf("go list: %w", err)
	}
	cmd := exec.CommandContext(ctx, "go", "-C", strings.TrimSpace(string(root)), "build", "-trimpath",
		"-ldflags=-s -w", "-o", path, "./cmd/fddhdb")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
}
