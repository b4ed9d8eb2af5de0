//go:build linux

package main

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"
)

// saysLocked finds in an error that another process has the database open.
var saysLocked = regexp.MustCompile(`(?i)in use|another process|other process|locked`)

// promptly is how long a verb that writes may wait for a process that only reads: it does so for ten seconds.
const promptly = 20 * time.Second

// ownsAlone matches verbs that need the folder for themselves.
var ownsAlone = regexp.MustCompile(`^repair|--acknowledge`)

// twoProcesses lets two processes meet at one database. A verb runs while a shell has
// the database open, for writing, so that the verb works through it, or for reading; or verbs begin at the
// same moment.
func twoProcesses(ctx context.Context, t *trial) error {
	type meeting struct {
		v        verb
		readOnly bool
	}
	var held []meeting
	for _, v := range verbs {
		if v.serves || !(v.writes || v.opens) {
			continue
		}
		held = append(held, meeting{v, false}, meeting{v, true})
	}
	// One half of the attempts is of each sort.
	order, races := t.shuffled(len(held)), 4
	n := 2 * len(held)
	t.each(ctx, n, func(ctx context.Context, a *attempt) error {
		if a.number%4 == 3 {
			return a.race(ctx, a.number/4%races)
		}
		m := held[order[a.number/2%len(held)]]
		return a.meet(ctx, m.v, m.readOnly)
	})
	return nil
}

// meet runs a verb while a shell has the database open.
func (a *attempt) meet(ctx context.Context, v verb, readOnly bool) error {
	s := a.t.f.stocks
	b, err := s.baseline(ctx, a, v)
	if err != nil {
		return err
	}
	if err := a.begin(func(dir string) error { return s.supply(dir, &v) }); err != nil {
		return err
	}
	shell := []string{"x.db"}
	if readOnly {
		shell = append(shell, "--readonly")
	}
	h, err := a.t.f.hold(ctx, a.dir, shell...)
	if err != nil {
		return err
	}
	a.lines = append(a.lines, "fddhdb "+strings.Join(shell, " ")+"   # is open meanwhile")
	c := v.call()
	c.within = b.took + a.t.f.more
	if readOnly && v.writes {
		c.within = promptly
	}
	r, err := a.do(ctx, c)
	h.kill()
	if err != nil || a.broken {
		return err
	}
	refused := readOnly && v.writes || ownsAlone.MatchString(v.args)
	switch {
	case refused && r.code == 0:
		// While the other process only reads, a backup or a dry run may succeed.
		if !readOnly || !b.stable || b.after != s.looks[v.database()] {
			a.found("it works on a database that another process has open")
		}
	case refused && !saysLocked.MatchString(r.err):
		a.found("the error does not say that another process has the database open: %v", r)
	case !refused && r.code != b.code:
		a.found("another end than alone, %d: %v", b.code, r)
	case readOnly && !v.writes && b.same && !b.answered(r, a.dir):
		a.found("another answer than alone: %s", difference(b.out, answer(r, a.dir)))
	}
	return a.sound(ctx, v, b, r.code == 0)
}

// race lets verbs begin at the same moment.
func (a *attempt) race(ctx context.Context, which int) error {
	backup := verbOf("backup x.db repo")
	if err := a.begin(func(dir string) error {
		return a.t.f.stocks.supply(dir, &backup)
	}); err != nil {
		return err
	}
	sorts := [][]string{
		{"init new.db --codes 32", "init new.db --codes 32"},
		{"import new.db --init --items in/items.jsonl", "import new.db --init --items in/items.jsonl"},
		{"restore repo new.db", "restore repo new.db"},
		{"backup x.db repo", "prune repo --keep 1", "restore repo new.db"},
	}
	lines := sorts[which]
	results, errs := make([]*result, len(lines)), make([]error, len(lines))
	var all sync.WaitGroup
	for i, line := range lines {
		wait := time.Duration(a.r.IntN(3000)) * time.Microsecond
		a.lines = append(a.lines, fmt.Sprintf("(sleep %f; fddhdb %s) &", wait.Seconds(), line))
		all.Go(func() {
			time.Sleep(wait)
			results[i], errs[i] = a.t.f.do(ctx, a.dir, call{args: strings.Fields(line), within: time.Minute})
		})
	}
	all.Wait()
	done := 0
	for i, r := range results {
		if errs[i] != nil {
			return errs[i]
		}
		a.t.mu.Lock()
		a.t.runs++
		a.t.mu.Unlock()
		a.said = r.err
		switch {
		case r.late || crashed.MatchString(r.err) || r.code < 0:
			a.found("%s at the same time: %v", lines[i], r)
		case r.code == 0:
			done++
		case !strings.HasPrefix(r.err[strings.LastIndexByte(strings.TrimSpace(r.err), '\n')+1:], "fddhdb: "):
			a.found("%s at the same time: no clear error: %v", lines[i], r)
		}
	}
	switch {
	case which == 0 && done != 1:
		a.found("of two that make the same database %d have succeeded: %v; %v", done, results[0], results[1])
	case done == 0:
		a.found("of those that began at the same time none has succeeded: %v; %v", results[0], results[1])
	}
	for _, args := range [][]string{{"verify", "repo"}, {"verify", "new.db", "--deep"},
		{"verify", "x.db", "--deep"}, {"restore", "repo", "again.db"}} {
		if which == 3 && args[1] == "new.db" && results[2].code != 0 {
			continue // the backup to restore was pruned
		}
		r, err := a.do(ctx, call{args: args})
		if err != nil {
			return err
		}
		if r.code != 0 {
			a.found("%s after what began at the same time: %v %s", strings.Join(args, " "), r, brief(r.out))
		}
	}
	return nil
}
