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

// A state is all that can be seen of a database: the items, codes and collections.
type state struct {
	text string
	ok   bool // it could be read to its end
}

// look reads the state of a database by one shell that only looks.
func (s *stocks) look(ctx context.Context, dir, name, stock string) (state, error) {
	r, err := s.f.do(ctx, dir, lookCall(name, stock))
	if err != nil {
		return state{}, err
	}
	return state{r.out, r.code == 0 && !r.late}, nil
}

// lookCall is the call of look. What stands by is seen by its number of codes.
func lookCall(name, stock string) call {
	if !strings.HasSuffix(name, ".db") {
		name += ".db"
	}
	args := []string{name, "--readonly", "-c", "scan --json"}
	switch stock {
	case "main", "killed", "staged":
		args = append(args, "-c", "count --where year>=2010", "-c", "scan --collection codes", "-c", "search --collection codes --codes in/codes.npy --row 3")
	case "anchors":
		args = append(args, "-c", "search --from image --to text --vectors in/wide_image.npy --row 1")
	case "old":
		args = []string{name, "--readonly", "-c", "collections"}
	}
	return call{args: args, within: time.Minute}
}

// A baseline is what a verb does where nothing is wrong.
type baseline struct {
	once sync.Once
	err  error

	code   int
	took   time.Duration // the longer of two runs
	out    string
	same   bool // two runs have the same out
	files  map[string][32]byte
	after  state // of x.db
	stable bool  // two runs have the same after
}

// baseline runs a verb twice on copies of its database, the first time that it is asked for.
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

// supply puts into a folder what a verb needs.
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

// outputs returns the sums of the files that a verb has written beside databases.
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

// sound looks at what a verb that has ended somehow has left: the database is in order and
// in the state before or after the verb, after it if the verb has said so; backups are
// whole; and the verb works when it is carried out again.
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
	case !b.stable || v.parts && !done: // there is nothing to compare with
	case done && now != after:
		a.found("it has succeeded, but what it did is not there: %s", difference(after.text, now.text))
	case now != before && now != after:
		a.found("afterwards there is neither what was there before nor what the verb does: %s", difference(before.text, now.text))
	}
	check := func(args ...string) error {
		r, err := a.do(ctx, call{args: args})
		if err == nil && r.code != 0 {
			a.found("%s afterwards: %v %s", strings.Join(args, " "), r, brief(r.out))
		}
		return err
	}
	if v.database() != "killed" || done { // the losses of a killed one are told
		if err := check("verify", "x.db", "--deep"); err != nil {
			return err
		}
	}
	if v.repo {
		if err := check("verify", "repo"); err != nil {
			return err
		}
	}
	if v.name() == "prune" { // it has left something to restore
		if err := check("restore", "repo", "again.db", "--skip-verify"); err != nil {
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

// doneAlready finds in an error that there is nothing left to do, which a state need not show.
var doneAlready = regexp.MustCompile(`exists already|not found`)

// difference says where two texts begin to differ.
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
