//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// These are the speeds of the slow disk.
const (
	slowBytes      = 2 << 20
	slowOperations = 60
)

// slowDisk carries verbs out on a file system that the kernel slows down for the
// processes of a control group: ext4 on a loop device. It needs root, loop devices and
// control groups that limit block devices.
func slowDisk(ctx context.Context, t *trial) error {
	if os.Getenv(inside) != "root" {
		return errors.New("a loop device and limits of its speed need root")
	}
	dir := filepath.Join(t.f.root, "slow")
	enter, leave, err := slowMount(ctx, t.f.root, dir)
	if err != nil {
		return fmt.Errorf("no disk can be slowed down: %w", err)
	}
	defer leave()
	tried := some(func(v *verb) bool {
		return !v.serves && (v.writes || v.makes != "" || v.repo) && v.database() != "anchors"
	})
	order := t.shuffled(len(tried))
	root := t.f.root
	t.f.root = dir // attempts are made there
	defer func() { t.f.root = root }()
	t.each(ctx, len(tried)*2, func(ctx context.Context, a *attempt) error {
		v := tried[order[a.number/2]]
		b, err := t.f.stocks.baseline(ctx, a, v)
		if err != nil {
			return err
		}
		if err := a.begin(func(dir string) error { return t.f.stocks.supply(dir, &v) }); err != nil {
			return err
		}
		syscall.Sync() // the verb does not wait for writes of the preparation
		c := v.call()
		c.limits, c.within = enter, 3*time.Minute
		kill := a.number%2 == 1
		if kill {
			// the kernel ends the process once the disk has answered
			c.signals, c.grace = []syscall.Signal{syscall.SIGKILL}, time.Minute
			c.delay = time.Duration(a.r.Float64() * float64(3*b.took))
		}
		r, err := a.do(ctx, c)
		if err != nil || a.broken {
			return err
		}
		if !kill && r.code != 0 {
			a.found("it fails on a slow disk: %v", r)
		}
		if v.makes != "" && r.code != 0 {
			if err := a.makesAgain(ctx, v); err != nil {
				return err
			}
		}
		return a.sound(ctx, v, b, r.code == 0)
	})
	return nil
}

// slowMount mounts a new disk on dir. The disk is slow for what a shell runs after the
// commands enter. leave unmounts it.
func slowMount(ctx context.Context, parent, dir string) (enter string, leave func(), err error) {
	run := func(name string, args ...string) error {
		if out, err := exec.CommandContext(ctx, name, args...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", name, err, brief(string(out)))
		}
		return nil
	}
	image := filepath.Join(parent, "disk.img")
	w, err := os.Create(image)
	if err != nil {
		return "", nil, err
	}
	if err := errors.Join(w.Truncate(512<<20), w.Close(), os.Mkdir(dir, 0o777)); err != nil {
		return "", nil, err
	}
	if err := errors.Join(run("mkfs.ext4", "-q", "-F", image),
		run("mount", "-o", "loop", image, dir)); err != nil {
		return "", nil, err
	}
	unmount := func() { _ = run("umount", dir) } // otherwise it goes with the namespace
	info, err := os.Stat(dir)
	if err != nil {
		unmount()
		return "", nil, err
	}
	dev := info.Sys().(*syscall.Stat_t).Dev
	device := fmt.Sprintf("%d:%d", dev>>8&0xfff, dev&0xff)
	group, err := slowGroup(device)
	if err != nil {
		unmount()
		return "", nil, err
	}
	return "echo $$ > " + group + "/cgroup.procs", func() { unmount(); _ = os.Remove(group) }, nil
}

// slowGroup makes a control group, of version 2 or 1, in which a device is slow.
func slowGroup(device string) (group string, err error) {
	name := fmt.Sprintf("fddhdb-field-%d", os.Getpid())
	limit := map[string]string{"io.max": fmt.Sprintf("%s rbps=%d wbps=%d riops=%d wiops=%d", device,
		slowBytes, slowBytes, slowOperations, slowOperations)}
	parent := "/sys/fs/cgroup"
	if _, err := os.Stat("/sys/fs/cgroup/blkio"); err == nil {
		parent, limit = "/sys/fs/cgroup/blkio", map[string]string{}
		for _, way := range []string{"read", "write"} {
			limit["blkio.throttle."+way+"_bps_device"] = fmt.Sprint(device, " ", slowBytes)
			limit["blkio.throttle."+way+"_iops_device"] = fmt.Sprint(device, " ", slowOperations)
		}
	}
	group = filepath.Join(parent, name)
	if err := os.Mkdir(group, 0o755); err != nil {
		return "", err
	}
	for file, text := range limit {
		if err := os.WriteFile(filepath.Join(group, file), []byte(text), 0); err != nil {
			return "", errors.Join(err, os.Remove(group))
		}
	}
	return group, nil
}
