//go:build linux

package main

import (
	"context"
	"os"
	"regexp"
	"strings"
)

// A limit is what a shell, or the environment, grants a command.
type limit struct {
	shell string
	env   string
	crash bool // memory may run out, and then the Go runtime ends the process
}

// ulimit -f counts 512 bytes, -v 1,024.
var someLimits = []limit{
	{shell: "ulimit -n 20"}, {shell: "ulimit -n 40"}, {shell: "ulimit -n 64"},
	{shell: "ulimit -f 1"}, {shell: "ulimit -f 64"}, {shell: "ulimit -f 2000"}, {shell: "ulimit -f 20000"},
	{shell: "ulimit -v 600000", crash: true}, {shell: "ulimit -v 1200000", crash: true},
	{shell: "ulimit -v 2500000", crash: true},
	{env: "GOMEMLIMIT=4MiB"}, {env: "GOMEMLIMIT=40MiB"},
}

// limits carries verbs out with limits on open files, on the size of files and on
// memory. Each has to end with success or an error, and to leave the database in order.
func limits(ctx context.Context, t *trial) error {
	tried := some(func(v *verb) bool {
		return !v.serves &&
			(v.writes || v.makes != "" || v.repo || v.slow || !v.prints)
	})
	if t.f.long {
		tried = some(func(v *verb) bool { return !v.serves })
	}
	n := len(tried) * len(someLimits)
	order := t.shuffled(n)
	t.each(ctx, n, func(ctx context.Context, a *attempt) error {
		i := order[a.number]
		v, l := tried[i%len(tried)], someLimits[i/len(tried)]
		b, err := t.f.stocks.baseline(ctx, a, v)
		if err != nil {
			return err
		}
		if err := a.begin(func(dir string) error { return t.f.stocks.supply(dir, &v) }); err != nil {
			return err
		}
		c := v.call()
		c.limits, c.mayCrash = l.shell, l.crash
		if l.env != "" {
			c.env = []string{l.env}
		}
		r, err := a.do(ctx, c)
		if err != nil || a.broken {
			return err
		}
		if r.code == 2 && !l.crash {
			a.found("exit code 2 blames the command line: %v", r)
		}
		return a.sound(ctx, v, b, r.code == 0)
	})
	return nil
}

// saysUnwritten finds in an error that something could not be written.
var saysUnwritten = regexp.MustCompile(`(?i)no space|write|full`)

// devFull gives verbs an output that takes nothing, as stdout or as the file to write.
// None of them may report success.
func devFull(ctx context.Context, t *trial) error {
	if _, err := os.Stat("/dev/full"); err != nil {
		return err
	}
	tried := some(func(v *verb) bool { return !v.serves })
	order := t.shuffled(2 * len(tried))
	t.each(ctx, len(order), func(ctx context.Context, a *attempt) error {
		v, json := tried[order[a.number]/2], order[a.number]%2 == 1
		b, err := t.f.stocks.baseline(ctx, a, v)
		if err != nil {
			return err
		}
		c := v.call()
		if json {
			if v.stdin != "" || strings.Contains(v.args, "json") || v.name() == "x.db" ||
				v.name() == "help" || v.name() == "completion" {
				return nil
			}
			c.args = append(c.args, "--json")
		}
		var links []string
		for _, w := range c.args {
			if i := strings.LastIndexByte(w, '=') + 1; strings.HasPrefix(w[i:], "out") {
				links = append(links, w[i:])
			}
		}
		if len(links) > 0 { // one of the links
			i := a.r.IntN(len(links))
			links = links[i : i+1]
		}
		err = a.begin(func(dir string) error {
			if err := t.f.stocks.supply(dir, &v); err != nil {
				return err
			}
			for _, l := range links {
				if err := os.Symlink("/dev/full", dir+"/"+l); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		if len(links) == 0 {
			c.stdout = "/dev/full"
		}
		r, err := a.do(ctx, c)
		if err != nil || a.broken {
			return err
		}
		switch {
		case r.code == 0 && len(links) == 0 && b.out != "":
			a.found("it says that it has succeeded, though nothing of what it printed was written")
		case r.code != 0 && !saysUnwritten.MatchString(r.err):
			a.found("the error does not say that nothing can be written: %v", r)
		}
		for _, l := range links {
			if info, err := os.Lstat(a.path(l)); r.code == 0 && err == nil &&
				info.Mode()&os.ModeSymlink != 0 {
				a.found("it says that it has succeeded, though %s is /dev/full", l)
			}
		}
		if v.writes || v.makes != "" || v.repo {
			return a.sound(ctx, v, b, false)
		}
		return nil
	})
	return nil
}
