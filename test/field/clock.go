//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// clocks lets verbs work after a clock was wrong: files have times of the past or the future, or a backup
// says that it was made at such a time.
func clocks(ctx context.Context, t *trial) error {
	tried := some(func(v *verb) bool { return !v.serves && !v.slow })
	times := []time.Time{time.Unix(0, 0), time.Date(2099, 12, 31, 0, 0, 0, 0, time.UTC)}
	order := t.shuffled(len(tried))
	t.each(ctx, len(tried)*len(times)+8, func(ctx context.Context, a *attempt) error {
		when := times[a.number%2]
		if a.number < 8 {
			return a.wrongBackup(ctx, when, a.number/2)
		}
		return a.wrongTimes(ctx, tried[order[(a.number-8)/2]], when)
	})
	return nil
}

// wrongTimes gives all files the time when, and compares what a verb does.
func (a *attempt) wrongTimes(ctx context.Context, v verb, when time.Time) error {
	s := a.t.f.stocks
	b, err := s.baseline(ctx, a, v)
	if err != nil {
		return err
	}
	err = a.begin(func(dir string) error {
		if err := s.supply(dir, &v); err != nil {
			return err
		}
		return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.Type()&fs.ModeSymlink != 0 {
				return err
			}
			return os.Chtimes(path, when, when)
		})
	})
	if err != nil {
		return err
	}
	a.lines = append(a.lines, "# all files are of "+when.UTC().Format(time.RFC3339))
	r, err := a.do(ctx, v.call())
	if err != nil || a.broken {
		return err
	}
	if r.code != 0 || b.same && !b.answered(r, a.dir) {
		a.found("the times of files change what it does: %v: %s", r, difference(b.out, answer(r, a.dir)))
	}
	return a.sound(ctx, v, b, r.code == 0)
}

// wrongBackup gives a backup another time: the newest, or the one that which names. It
// then goes on with the repository. Nothing that is acknowledged after that may be
// lost.
func (a *attempt) wrongBackup(ctx context.Context, when time.Time, which int) error {
	v := verbOf("backup x.db repo")
	err := a.begin(func(dir string) error {
		if err := a.t.f.stocks.supply(dir, &v); err != nil {
			return err
		}
		return redate(filepath.Join(dir, "repo"), which, when)
	})
	if err != nil {
		return err
	}
	a.lines = append(a.lines, fmt.Sprintf("# backup %d is of %s", which, when.UTC().Format(time.RFC3339)))
	var id string
	for _, line := range []string{"backups repo", "verify repo", "restore repo first.db",
		"backup x.db repo --json", "prune repo --keep 2", "backups repo --json", "verify repo",
		"restore repo second.db --id ID", "backup x.db repo", "prune repo --keep 1", "verify repo",
		"restore repo third.db"} {
		r, err := a.do(ctx, call{args: strings.Fields(strings.ReplaceAll(line, "ID", id))})
		if err != nil || a.broken {
			return err
		}
		if r.code != 0 {
			a.found("where a backup is of another time: %s: %v", line, r)
			return nil
		}
		if strings.HasSuffix(line, "repo --json") && strings.HasPrefix(line, "backup ") {
			var made struct{ ID string }
			if err := json.Unmarshal([]byte(r.out), &made); err != nil || made.ID == "" {
				return fmt.Errorf("what backup says has no id: %w",
					errors.Join(err, errors.New(brief(r.out))))
			}
			id = made.ID
		}
	}
	return nil
}

// redate gives a backup the id and the time of the moment when.
func redate(repo string, which int, when time.Time) error {
	names, err := filepath.Glob(filepath.Join(repo, "backups", "*.json"))
	if err != nil || len(names) == 0 {
		return errors.Join(err, errors.New("there are no backups"))
	}
	slices.Sort(names)
	name := names[which%len(names)]
	b, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal(b, &m); err != nil {
		return err
	}
	old := strings.TrimSuffix(filepath.Base(name), ".json")
	id := when.UTC().Format("20060102t150405") + "-000" + old[strings.LastIndexByte(old, '-'):]
	m["id"], m["time"] = json.RawMessage(strconv.Quote(id)),
		json.RawMessage(strconv.Quote(when.UTC().Format("2006-01-02T15:04:05.000Z")))
	if b, err = json.Marshal(m); err != nil {
		return err
	}
	return errors.Join(os.WriteFile(filepath.Join(repo, "backups", id+".json"), b, 0o666), os.Remove(name))
}
