//go:build linux

package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// An oddity replaces a file by another kind of file.
type oddity struct {
	name string
	make func(path, saved string) error // saved is the path to which the file was moved
}

var oddities = []oddity{
	{"a pipe", func(path, _ string) error { return syscall.Mkfifo(path, 0o666) }},
	{"a folder", func(path, _ string) error { return os.Mkdir(path, 0o777) }},
	{"a file", func(path, _ string) error { return os.WriteFile(path, []byte("something else\n"), 0o666) }},
	{"an empty file", func(path, _ string) error { return os.WriteFile(path, nil, 0o666) }},
	{"a link to nothing", func(path, _ string) error { return os.Symlink("nothing", path) }},
	{"a link to itself", func(path, _ string) error { return os.Symlink(filepath.Base(path), path) }},
	{"a link to /dev/zero", func(path, _ string) error { return os.Symlink("/dev/zero", path) }},
	{"a link to /dev/full", func(path, _ string) error { return os.Symlink("/dev/full", path) }},
	{"a link to a terminal", func(path, _ string) error { return os.Symlink("/dev/ptmx", path) }},
	{"a link to where it is", func(path, saved string) error { return os.Symlink(saved, path) }},
	{"a socket", func(path, _ string) error { return syscall.Mknod(path, syscall.S_IFSOCK|0o666, 0) }},
}

// oddFiles replaces files and folders of databases and backups by other kinds of files.
// Verbs have to end in time, with an error or with their right answer. If a link leads
// to the same file, nothing may be lost.
func oddFiles(ctx context.Context, t *trial) error {
	type target struct{ stock, file string }
	var targets []target
	for _, stock := range []string{"main", "repo"} {
		dir := t.f.stocks.path(stock)
		if stock == "repo" {
			dir = filepath.Join(t.f.stocks.dir, stock)
		}
		names, err := regularFiles(dir)
		if err != nil {
			return err
		}
		folders := map[string]bool{}
		for _, name := range names {
			targets = append(targets, target{stock, name})
			for d := filepath.Dir(name); d != "."; d = filepath.Dir(d) {
				folders[d] = true
			}
		}
		for d := range folders {
			targets = append(targets, target{stock, d})
		}
		for _, absent := range []string{"ingest", "checkpoints", "restoring", "repairing", "repaired",
			"FDDHDB.tmp", "COMMITS.tmp"} {
			if stock == "main" {
				targets = append(targets, target{stock, absent})
			}
		}
	}
	n := len(targets) * len(oddities)
	order := t.shuffled(n)
	rounds := 1
	if t.f.long {
		rounds = 3
	}
	t.each(ctx, n*rounds, func(ctx context.Context, a *attempt) error {
		i := order[a.number%n]
		p, o := targets[i%len(targets)], oddities[i/len(targets)]
		s := t.f.stocks
		v := s.reader(a, place{stock: p.stock}, 1)
		b, err := s.baseline(ctx, a, v)
		if err != nil {
			return err
		}
		root := "x.db"
		if p.stock == "repo" {
			root = "repo"
		}
		path, saved := a.path(filepath.Join(root, p.file)), a.path("saved")
		err = a.begin(func(dir string) error {
			path, saved := filepath.Join(dir, root, p.file), filepath.Join(dir, "saved")
			if err := s.supply(dir, &v); err != nil {
				return err
			}
			if err := os.Rename(path, saved); err != nil && !os.IsNotExist(err) {
				return err
			}
			return o.make(path, saved)
		})
		if err != nil {
			return err
		}
		a.lines = append(a.lines, "# "+filepath.Join(root, p.file)+" is "+o.name)
		c := v.call()
		c.within = b.took + t.f.more
		r, err := a.do(ctx, c)
		if err != nil || a.broken {
			return err
		}
		// The answer of prune depends on which backups it finds whole, so it is checked
		// below.
		if v.name() != "prune" {
			err = a.answers(ctx, place{stock: p.stock, file: p.file}, v, b, r)
		}
		if err != nil || a.broken || p.stock != "repo" {
			return err
		}
		// With the file back in its place, all backups are whole, and there is at least
		// one.
		if err := putBack(saved, path); err != nil {
			return err
		}
		a.lines = append(a.lines, "# and it is put back")
		for _, args := range [][]string{{"verify", "repo"}, {"restore", "repo", "again.db"}} {
			r, err := a.do(ctx, call{args: args})
			if err != nil {
				return err
			}
			if r.code != 0 {
				a.found("where %s was %s, %s fails afterwards: %v %s", p.file, o.name,
					strings.Join(args, " "), r, brief(r.out))
			}
		}
		return nil
	})
	return nil
}

// putBack puts a saved file or folder back in its place. What a backup has meanwhile
// stored in a folder of that name stays.
func putBack(saved, path string) error {
	was, err := os.Lstat(saved)
	if err != nil {
		return err
	}
	if is, err := os.Lstat(path); err != nil || !was.IsDir() || !is.IsDir() {
		return errors.Join(os.RemoveAll(path), os.Rename(saved, path))
	}
	entries, err := os.ReadDir(saved)
	for _, e := range entries {
		err = errors.Join(err, putBack(filepath.Join(saved, e.Name()), filepath.Join(path, e.Name())))
	}
	return err
}
