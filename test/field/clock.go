//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// clocks lets verbs work while a clock is, or was, wrong. Only root can change the
// clock of a machine. A library that deceives programs about the time does not reach
// programs in Go, because these ask the kernel. So there are three sorts of attempts:
// files have times of the past or the future; a backup says that it was made at such a
// time; and, in a long run, the command is built with a package time whose clock is
// off.
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
	if !t.f.long {
		return nil
	}
	command := filepath.Join(t.f.root, "fddhdb-clock")
	if err := buildWithClock(ctx, t.f.root, command); err != nil {
		return fmt.Errorf("only times of files were wrong: no command with a clock of its own: %w", err)
	}
	t.each(ctx, 40, func(ctx context.Context, a *attempt) error { return a.jumping(ctx, command) })
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

// clockVariable names the environment variable with the seconds by which the clock of
// the command is off. If the value begins with ~, the error comes and goes while the
// command runs.
const clockVariable = "FDDHDB_FIELD_CLOCK"

// clockSource is added to package time.
const clockSource = `package time

import "syscall"

var fieldOffset, fieldJumps, fieldCalls = fieldClock()

func fieldClock() (offset int64, jumps bool, calls int64) {
	s, _ := syscall.Getenv("` + clockVariable + `")
	if len(s) > 0 && s[0] == '~' {
		s, jumps = s[1:], true
	}
	offset, _ = atoiField(s)
	return offset, jumps, 0
}

func atoiField(s string) (n int64, ok bool) {
	sign := int64(1)
	for i := 0; i < len(s); i++ {
		if s[i] == '-' {
			sign = -1
			continue
		}
		n = 10*n + int64(s[i]-'0')
	}
	return sign * n, true
}

// fieldSeconds is by how much the clock is off now; calls are counted without care.
func fieldSeconds() int64 {
	if fieldJumps {
		if fieldCalls++; fieldCalls/50%2 == 0 {
			return 0
		}
	}
	return fieldOffset
}
`

// buildWithClock builds the command into path, with a package time whose clock is off.
func buildWithClock(ctx context.Context, dir, path string) error {
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return err
	}
	src := filepath.Join(strings.TrimSpace(string(root)), "src", "time")
	b, err := os.ReadFile(filepath.Join(src, "time.go"))
	if err != nil {
		return err
	}
	const reads = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	if strings.Count(string(b), reads) != 1 {
		return errors.New("this version of Go reads the clock in another way: mend buildWithClock")
	}
	now := strings.Replace(string(b), reads, reads+"\tsec += fieldSeconds()\n", 1)
	files := map[string]string{"time.go": now, "field_clock.go": clockSource}
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for name, text := range files {
		own := filepath.Join(dir, name)
		if err := os.WriteFile(own, []byte(text), 0o666); err != nil {
			return err
		}
		overlay.Replace[filepath.Join(src, name)] = own
	}
	text, err := json.Marshal(overlay)
	if err != nil {
		return err
	}
	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, text, 0o666); err != nil {
		return err
	}
	return build(ctx, path, "-overlay", file)
}

// jumping lets a database and its backups live with a clock that differs from verb to
// verb, and sometimes within one. Nothing that is acknowledged may be lost.
func (a *attempt) jumping(ctx context.Context, command string) error {
	v := verbOf("backup x.db repo")
	if err := a.begin(func(dir string) error { return a.t.f.stocks.supply(dir, &v) }); err != nil {
		return err
	}
	const year = 365 * 24 * 3600
	offsets := []int64{0, 75 * year, -56 * year, 3600, -3600, -2 * year}
	lines := []string{
		"put x.db c1 --labels 1", "backup x.db repo", "backups repo", "update x.db --teacher labels",
		"models x.db", "reindex x.db", "prune repo --keep 2",
		"train x.db --bits 16 --anchors 20" + tagged, "put x.db c2 --labels 2", "backup x.db repo",
		"compact x.db", "stats x.db", "repair x.db", "prune repo --keep 1",
	}
	for range 14 {
		line := lines[a.r.IntN(len(lines))]
		offset := number(offsets[a.r.IntN(len(offsets))])
		if a.r.IntN(3) == 0 {
			offset = "~" + offset
		}
		r, err := a.do(ctx, call{args: strings.Fields(line), env: []string{clockVariable + "=" + offset},
			command: command})
		if err != nil || a.broken {
			return err
		}
		if r.code != 0 {
			a.found("with a clock that is off: %v", r)
			return nil
		}
	}
	for _, line := range []string{"verify x.db --deep", "verify repo", "restore repo new.db", "count new.db",
		"backup x.db repo", "prune repo --keep 1", "restore repo newer.db"} {
		r, err := a.do(ctx, call{args: strings.Fields(line)})
		if err != nil || a.broken {
			return err
		}
		if r.code != 0 {
			a.found("after a clock that was off: %v %s", r, brief(r.out))
			return nil
		}
	}
	return nil
}
