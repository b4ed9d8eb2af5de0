//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"text/tabwriter"
	"time"
)

// A trial is the run of one scene.
type trial struct {
	f     *field
	scene scene
	began time.Time
	until time.Time // the end in a short run; zero: when everything is done
	took  time.Duration

	mu       sync.Mutex
	runs     int      // commands
	planned  int      // attempts that a long run makes
	tried    int      // attempts made
	findings []string // guarded by mu, as runs and tried
	skipped  string   // why nothing was tried, or not all of it
}

// enough reports whether the scene ends now.
func (t *trial) enough() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.findings) >= t.f.few || !t.until.IsZero() && time.Now().After(t.until)
}

// rand returns the random numbers of attempt n. They depend on the seed, the scene and
// n alone.
func (t *trial) rand(n int) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprint(h, t.scene.name, n)
	return rand.New(rand.NewPCG(t.f.seed, h.Sum64()))
}

// each makes n attempts, several at a time, in the order of their numbers, until the
// scene ends.
func (t *trial) each(ctx context.Context, n int, try func(ctx context.Context, a *attempt) error) {
	t.planned += n
	var next atomic.Int64
	var all sync.WaitGroup
	for range t.f.jobs {
		all.Go(func() {
			for ctx.Err() == nil && !t.enough() {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				t.try(ctx, i, try)
			}
		})
	}
	all.Wait()
}

// try makes attempt i in a folder of its own.
func (t *trial) try(ctx context.Context, i int, f func(ctx context.Context, a *attempt) error) {
	a := &attempt{t: t, number: i, r: t.rand(i),
		dir: filepath.Join(t.f.root, fmt.Sprintf("%s-%d", strings.ReplaceAll(t.scene.name, " ", "-"), i))}
	a.dir = strings.ReplaceAll(a.dir, ":", "")
	err := os.MkdirAll(a.dir, 0o777)
	if err == nil {
		err = f(ctx, a)
	}
	if err != nil && ctx.Err() == nil {
		a.found("the harness failed: %v", err)
	}
	if err := os.RemoveAll(a.dir); err != nil && ctx.Err() == nil {
		a.found("the harness failed: %v", err)
	}
	t.mu.Lock()
	t.tried++
	t.mu.Unlock()
}

// An attempt tries one thing in a folder.
type attempt struct {
	t       *trial
	number  int
	r       *rand.Rand
	dir     string
	prepare func(dir string) error // puts into a folder what is there at the beginning
	lines   []string               // calls so far
	called  string                 // the last call
	said    string                 // all of its stderr
	broken  bool                   // there is a finding, so the rest of the attempt proves nothing
}

// begin prepares the folder with prepare.
func (a *attempt) begin(prepare func(dir string) error) error {
	a.prepare = prepare
	return prepare(a.dir)
}

// path returns the path of a file in the folder.
func (a *attempt) path(name string) string { return filepath.Join(a.dir, name) }

// crashed finds the words of the Go runtime when it ends a process.
var crashed = regexp.MustCompile(`(?m)^(panic: |fatal error: |goroutine \d+ .*\[|SIG[A-Z]+: |runtime: )`)

// outOfMemory finds the words of the Go runtime, or of the shell before it, when memory
// runs out.
var outOfMemory = regexp.MustCompile(
	`(?i)out of memory|cannot allocate|failed to (reserve|create|allocate)|mmap|pthread_create|newosproc`)

// do carries a call out. It finds what is wrong under any condition: the call does not
// end in time, the runtime ends it, a signal ends it that was not sent, or an error
// does not say that it comes from fddhdb.
func (a *attempt) do(ctx context.Context, c call) (*result, error) {
	if c.within == 0 {
		c.within = time.Minute
	}
	a.lines = append(a.lines, c.line())
	a.called = c.line()
	r, err := a.t.f.do(ctx, a.dir, c)
	if err != nil {
		return nil, err
	}
	a.said = r.err
	a.lines[len(a.lines)-1] += fmt.Sprintf("   # exit code %d", r.code)
	a.t.mu.Lock()
	a.t.runs++
	a.t.mu.Unlock()
	last := strings.TrimSpace(r.err)
	last = last[strings.LastIndexByte(last, '\n')+1:]
	switch {
	case r.late && len(c.signals) > 0:
		a.found("it does not end within %v after %v", c.grace, c.signals)
	case r.late:
		a.found("it does not end within %v", c.within)
	case c.mayCrash && (outOfMemory.MatchString(r.err) || r.code < 0):
	case crashed.MatchString(r.err):
		a.found("the runtime ended it: %s", brief(crashed.FindString(r.err)+last))
	case r.code < 0 && len(c.signals) == 0:
		a.found("it was ended by %v", r.signal)
	case len(c.signals) > 1 && r.code == 128+int(c.signals[1]): // the second signal ends it without words
	case r.code > 3:
		a.found("exit code %d: %s", r.code, brief(r.err))
	case r.code > 0 && !strings.HasPrefix(last, "fddhdb: "):
		a.found("exit code %d, and the error is no clear one: %q", r.code, brief(r.err))
	}
	return r, nil
}

// found reports a finding and keeps what is needed to repeat it. Only the first finding
// of an attempt counts, as others follow from it.
func (a *attempt) found(format string, args ...any) {
	if a.broken {
		return
	}
	a.broken = true
	what := fmt.Sprintf(format, args...)
	kept, err := a.keep(what)
	if err != nil {
		kept = "nothing is kept: " + err.Error()
	}
	text := fmt.Sprintf("FOUND (%s) %s\n      %s\n      in %s", a.t.scene.name, what, a.called, kept)
	a.t.mu.Lock()
	defer a.t.mu.Unlock()
	a.t.findings = append(a.t.findings, text)
	fmt.Fprintln(a.t.f.out, text)
}

// keep keeps the state before the calls, made again, the state now, and the calls. It
// returns the folder.
func (a *attempt) keep(what string) (string, error) {
	f := a.t.f
	a.t.mu.Lock()
	defer a.t.mu.Unlock()
	if err := f.keeper(); err != nil {
		return "", err
	}
	dir := filepath.Join(f.kept, filepath.Base(a.dir))
	before := filepath.Join(dir, "before")
	if err := os.MkdirAll(before, 0o777); err != nil {
		return "", err
	}
	text := what + "\n\nIn a copy of before/ (after/ is what was left), with seed " + number(int64(f.seed)) +
		":\n\n" + strings.Join(a.lines, "\n") + "\n\nIt said:\n" + a.said
	err := os.WriteFile(filepath.Join(dir, "finding.txt"), []byte(text), 0o666)
	if a.prepare != nil {
		err = errors.Join(err, a.prepare(before))
	}
	return dir, errors.Join(err, copyTree(filepath.Join(dir, "after"), a.dir))
}

// keeping guards the making of the folder of findings.
var keeping sync.Mutex

// keeper makes the folder of findings, with the inputs in it.
func (f *field) keeper() error {
	keeping.Lock()
	defer keeping.Unlock()
	if f.kept != "" {
		return nil
	}
	kept, err := os.MkdirTemp(f.parent, "field-findings-")
	if err != nil {
		return err
	}
	f.kept = kept
	return copyTree(filepath.Join(kept, "in"), f.stocks.in)
}

// report prints the table of all scenes, and returns the number of findings.
func (f *field) report(trials []*trial) (findings int) {
	fmt.Fprintln(f.out)
	w := tabwriter.NewWriter(f.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "case\tattempts\truns\tfindings\tseconds\t")
	runs := 0
	for _, t := range trials {
		note := t.skipped
		if note != "" {
			note = "skipped: " + note
		}
		fmt.Fprintf(w, "%s\t%d of %d\t%d\t%d\t%.1f\t%s\n", t.scene.name, t.tried, t.planned, t.runs,
			len(t.findings), t.took.Seconds(), note)
		findings += len(t.findings)
		runs += t.runs
	}
	fmt.Fprintf(w, "all\t\t%d\t%d\t\t\n", runs, findings)
	_ = w.Flush() // as for all that is printed, the error does not matter
	if findings > 0 {
		fmt.Fprintf(f.out, "\nfield: %d findings, kept in %s; the seed was %d\n", findings, f.kept, f.seed)
	}
	return findings
}

func number(n int64) string { return fmt.Sprint(n) }

// copyTree copies files, folders, links and pipes. It leaves sockets and devices out.
func copyTree(to, from string) error {
	return filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // the file went meanwhile
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		dest := filepath.Join(to, rel)
		switch e.Type() {
		case fs.ModeDir:
			return os.MkdirAll(dest, 0o777)
		case fs.ModeSymlink:
			link, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return os.Symlink(link, dest)
		case fs.ModeNamedPipe:
			return syscall.Mkfifo(dest, 0o666)
		case 0:
			return copyFile(dest, path)
		}
		return nil
	})
}

func copyFile(to, from string) (err error) {
	r, err := os.Open(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer r.Close()
	w, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, r)
	return errors.Join(err, w.Close())
}

// regularFiles lists the regular files below a folder, by their paths within it.
func regularFiles(dir string) ([]string, error) {
	var all []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		all = append(all, rel)
		return err
	})
	slices.Sort(all)
	return all, err
}
