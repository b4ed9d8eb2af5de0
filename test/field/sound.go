//go:build linux

package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"
)

// A state is all that one can see of a database: items, codes and collections.
type state struct {
	text string
	ok   bool // it could be read to the end
}

// look reads the state of a database with one shell that does not write.
func (s *stocks) look(ctx context.Context, dir, name, stock string) (state, error) {
	r, err := s.f.do(ctx, dir, lookCall(name, stock))
	if err != nil {
		return state{}, err
	}
	return state{r.out, r.code == 0 && !r.late}, nil
}

// lookCall returns the call of look. Of the database old it lists the collections only.
func lookCall(name, stock string) call {
	if !strings.HasSuffix(name, ".db") {
		name += ".db"
	}
	args := []string{name, "--readonly", "-c", "scan --json"}
	switch stock {
	case "main", "killed":
		args = append(args, "-c", "count --where year>=2010", "-c", "scan --collection codes", "-c",
			"search --collection codes --codes in/codes.npy --row 3")
	case "anchors":
		args = append(args, "-c", "search --from image --to text --vectors in/wide_image.npy --row 1")
	}
	return call{args: args, within: time.Minute}
}

// A baseline is what a verb does if nothing is wrong.
type baseline struct {
	once sync.Once
	err  error

	code   int
	took   time.Duration // the longer of two runs
	out    string
	same   bool // two runs had the same out
	files  map[string][32]byte
	after  state // state of x.db afterwards
	stable bool  // two runs had the same after
}

// baseline returns the baseline of a verb. The first call runs the verb twice on copies
// of its database; later calls, and others at the same time, get that result.
func (s *stocks) baseline(ctx context.Context, a *attempt, v verb) (*baseline, error) {
	s.mu.Lock()
	b := s.baselines[v.String()]
	if b == nil {
		b = &baseline{}
		s.baselines[v.String()] = b
	}
	s.mu.Unlock()
	b.once.Do(func() { b.err = s.run(ctx, a, v, b) })
	return b, b.err
}

func (s *stocks) run(ctx context.Context, a *attempt, v verb, b *baseline) error {
	for i := range 2 {
		own := &attempt{t: a.t, dir: filepath.Join(a.dir, fmt.Sprint("baseline", i))}
		if err := os.Mkdir(own.dir, 0o777); err != nil {
			return err
		}
		if err := own.begin(func(dir string) error { return s.supply(dir, &v) }); err != nil {
			return err
		}
		c := v.call()
		c.within = 2 * time.Minute
		r, err := own.do(ctx, c)
		if err != nil {
			return err
		}
		a.lines, a.called, a.said, a.broken = own.lines, own.called, own.said, a.broken || own.broken
		files, err := outputs(own.dir)
		if err != nil {
			return err
		}
		after, err := s.look(ctx, own.dir, "x.db", v.database())
		if err != nil {
			return err
		}
		out := answer(r, own.dir)
		if i > 0 {
			b.same, b.stable = out == b.out, after == b.after
		}
		b.code, b.took, b.out, b.files, b.after = r.code, max(b.took, r.took), out, files, after
		if err := os.RemoveAll(own.dir); err != nil {
			return err
		}
	}
	return nil
}

// supply puts the files that a verb needs into a folder.
func (s *stocks) supply(dir string, v *verb) error {
	if err := os.Symlink(s.in, filepath.Join(dir, "in")); err != nil {
		return err
	}
	if v.repo {
		if err := copyTree(filepath.Join(dir, "repo"), filepath.Join(s.dir, "repo")); err != nil {
			return err
		}
	}
	return copyTree(filepath.Join(dir, "x.db"), s.path(v.database()))
}

// outputs returns the SHA-256 sums of the files that a verb has written beside
// databases.
func outputs(dir string) (map[string][32]byte, error) {
	all, err := filepath.Glob(filepath.Join(dir, "out*"))
	sums := map[string][32]byte{}
	for _, path := range all {
		if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
			continue
		}
		b, rerr := os.ReadFile(path)
		if rerr != nil {
			return nil, rerr
		}
		sums[filepath.Base(path)] = sha256.Sum256(b)
	}
	return sums, err
}

// sound checks what a verb has left, however it ended. The database is in order. Its
// state is the one before or after the verb; after it if the verb has reported success
// (done). Backups are whole. And the verb works if it is run again.
func (a *attempt) sound(ctx context.Context, v verb, b *baseline, done bool) error {
	if a.broken {
		return nil
	}
	s := a.t.f.stocks
	r, err := a.do(ctx, lookCall("x.db", v.database()))
	if err != nil || a.broken {
		return err
	}
	now := state{r.out, r.code == 0}
	before, after := s.looks[v.database()], b.after
	switch {
	case !now.ok && before.ok && after.ok:
		a.found("afterwards the database cannot be read: %v", r)
	case !b.stable || v.parts && !done: // nothing to compare with
	case done && now != after:
		a.found("it has succeeded, but what it did is not there: %s", difference(after.text, now.text))
	case now != before && now != after:
		a.found("afterwards there is neither what was there before nor what the verb does: %s",
			difference(before.text, now.text))
	}
	check := func(args ...string) error {
		r, err := a.do(ctx, call{args: args})
		if err == nil && r.code != 0 {
			a.found("%s afterwards: %v %s", strings.Join(args, " "), r, brief(r.out))
		}
		return err
	}
	if v.database() != "killed" || done { // the verb tells the losses of a killed one
		if err := check("verify", "x.db", "--deep"); err != nil {
			return err
		}
	}
	if v.repo {
		if err := check("verify", "repo"); err != nil {
			return err
		}
	}
	if v.name() == "prune" { // prune has left something to restore
		if err := check("restore", "repo", "again.db"); err != nil {
			return err
		}
	}
	if v.makes != "" && done {
		if err := check("verify", v.makes); err != nil {
			return err
		}
	}
	if done || a.broken || v.serves {
		return nil
	}
	r, err = a.do(ctx, v.call())
	if err == nil && r.code != 0 && now == before && v.makes == "" && !doneAlready.MatchString(r.err) {
		a.found("carried out again it fails: %v", r)
	}
	return err
}

// doneAlready finds in an error that there is nothing left to do. A state need not show
// that.
var doneAlready = regexp.MustCompile(`exists already|not found`)

// difference returns the place where two texts begin to differ.
func difference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(w), len(g)) {
		line := func(x []string) string {
			if i >= len(x) {
				return "nothing"
			}
			return fmt.Sprintf("%.200q", x[i])
		}
		if line(w) != line(g) {
			return fmt.Sprintf("line %d is %s, not %s", i+1, line(g), line(w))
		}
	}
	return "none"
}
