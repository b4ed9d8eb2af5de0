//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// fullLimit is how long a verb may take on a full disk.
const fullLimit = time.Minute

// saysFull finds in an error that the disk is full.
var saysFull = regexp.MustCompile(`(?i)\bfull\b|no space|disk`)

// room is the size of a disk once it has room again.
const room = 400 << 20

// A step is a part of the life of a database on a disk that becomes full.
type step struct {
	args string
	// steps that have to have succeeded, by the beginning of args; without them this one may fail in any way
	needs []string
	items int // items that it adds
}

// life is the steps on a disk. The items do not fit on the smaller disks, the training
// not on the middle ones.
var life = []step{
	{args: "init x.db --modality image:128 --modality text:32"},
	{args: "import x.db --vectors image=in/full_image.npy --vectors text=in/full_text.npy --labels in/full_labels.txt", needs: []string{"init"}, items: fullItems},
	{args: "put x.db k1 --labels 1", needs: []string{"init"}, items: 1},
	{args: "train x.db --bits 32 --anchors 800 --activate" + quickly, needs: []string{"import"}},
	{args: "put x.db k2 --labels 2", needs: []string{"init"}, items: 1},
	{args: "update x.db --teacher labels", needs: []string{"train"}},
	{args: "reindex x.db", needs: []string{"train"}},
	{args: "activate x.db --space 2", needs: []string{"train", "reindex"}},
	{args: "alter x.db --add-field year:int:index", needs: []string{"init"}},
	{args: "export x.db --items out.jsonl", needs: []string{"init"}},
	{args: "backup x.db repo", needs: []string{"init"}},
	{args: "restore repo new.db", needs: []string{"backup"}},
	{args: "compact x.db", needs: []string{"init"}},
	{args: "repair x.db", needs: []string{"init"}},
}

const fullItems = 9000

// fullDiskLife lets a database live on disks that are too small for it. Every verb has
// to end in time, and deleting has to work. Once there is room again, nothing is
// missing, and the failed steps succeed.
func fullDiskLife(ctx context.Context, t *trial) error {
	if os.Getenv(inside) == "" {
		return errNoMounts
	}
	sizes := []int64{3, 6, 10, 14, 20}
	order := t.shuffled(len(sizes))
	n := len(sizes)
	if t.f.long {
		n *= 12
	}
	t.each(ctx, n, func(ctx context.Context, a *attempt) error {
		if a.number < len(sizes) {
			return a.live(ctx, sizes[order[a.number]]<<20, false)
		}
		return a.live(ctx, 2<<20+a.r.Int64N(23<<20), true)
	})
	return nil
}

// live carries the steps, or some of them, out on a disk of size bytes.
func (a *attempt) live(ctx context.Context, size int64, some bool) error {
	if err := mountTmpfs(a.dir, size, false); err != nil {
		return err
	}
	defer syscall.Unmount(a.dir, syscall.MNT_DETACH)
	if err := os.Symlink(a.t.f.stocks.in, a.path("in")); err != nil {
		return err
	}
	a.lines = append(a.lines, fmt.Sprintf("mount -t tmpfs -o size=%d tmpfs . && ln -s ../in in", size))
	done := map[string]bool{}
	items, unsure := 0, 0
	// carry carries a step out. With mayFail it may fail because the disk is full, if
	// it needs room at all. It reports whether it succeeded.
	carry := func(s step, mayFail bool) (bool, error) {
		r, err := a.do(ctx, call{args: strings.Fields(s.args), within: fullLimit})
		if err != nil || a.broken {
			return false, err
		}
		verb := strings.Fields(s.args)[0]
		ready := !slices.ContainsFunc(s.needs, func(need string) bool { return !done[need] })
		switch {
		case r.code == 0:
			items += s.items
			done[verb] = true
		case !mayFail && ready:
			a.found("it does not work: %v", r)
		case ready && !saysFull.MatchString(r.err):
			a.found("the disk is full, and the error does not say so: %v", r)
		case strings.Contains(r.err, "failed"):
			unsure += s.items
		}
		return r.code == 0, nil
	}
	for i, s := range life {
		if some && i > 1 && a.r.IntN(3) == 0 {
			continue
		}
		if _, err := carry(s, true); err != nil || a.broken {
			return err
		}
	}
	// These fill the disk until nothing more goes in.
	for range 6 {
		ok, err := carry(life[1], true)
		if err != nil || a.broken {
			return err
		}
		if !ok {
			break
		}
	}
	if items > 10 {
		if _, err := carry(step{args: "delete x.db 1 2 3", items: -3}, false); err != nil || a.broken {
			return err
		}
	}
	if err := mountTmpfs(a.dir, size+room, true); err != nil {
		return err
	}
	a.lines = append(a.lines, fmt.Sprintf("mount -o remount,size=%d .", size+room))
	if !done["init"] {
		_, err := carry(life[0], false)
		return err
	}
	check := func(args string) (*result, error) {
		r, err := a.do(ctx, call{args: strings.Fields(args), within: 2 * time.Minute})
		if err == nil && r.code != 0 {
			a.found("with room again: %s: %v %s", args, r, brief(r.out))
		}
		return r, err
	}
	r, err := check("count x.db")
	if err != nil || a.broken {
		return err
	}
	if n, _ := strconv.Atoi(strings.TrimSpace(r.out)); n < items || n > items+unsure {
		a.found("with room again there are %d items, not %d", n, items)
	}
	for _, args := range []string{"verify x.db --deep", life[1].args, life[3].args, "delete x.db 4 5",
		"verify x.db --deep"} {
		if _, err := check(args); err != nil || a.broken {
			return err
		}
	}
	return nil
}

// fullDiskVerbs carries each verb out on a disk with a database and a little room, from
// none on.
func fullDiskVerbs(ctx context.Context, t *trial) error {
	if os.Getenv(inside) == "" {
		return errNoMounts
	}
	tried := some(func(v *verb) bool { return v.writes || v.makes != "" || v.repo || !v.prints && !v.serves })
	rooms := []int64{0, 4 << 10, 64 << 10, 256 << 10, 1 << 20, 2 << 20, 5 << 20, 12 << 20}
	n := len(tried) * len(rooms)
	order := t.shuffled(n)
	t.each(ctx, n, func(ctx context.Context, a *attempt) error {
		i := order[a.number]
		return a.onFull(ctx, tried[i%len(tried)], rooms[i/len(tried)])
	})
	return nil
}

func (a *attempt) onFull(ctx context.Context, v verb, rest int64) error {
	s := a.t.f.stocks
	b, err := s.baseline(ctx, a, v)
	if err != nil {
		return err
	}
	disk := filepath.Clean(a.dir)
	if err := mountTmpfs(disk, room, false); err != nil {
		return err
	}
	defer syscall.Unmount(disk, syscall.MNT_DETACH)
	if err := a.begin(func(dir string) error { return s.supply(dir, &v) }); err != nil {
		return err
	}
	var stat syscall.Statfs_t
	if err := syscall.Statfs(disk, &stat); err != nil {
		return os.NewSyscallError("statfs", err)
	}
	used := int64(stat.Blocks-stat.Bfree) * stat.Bsize
	size := max(used+rest, 4096)
	if err := mountTmpfs(disk, size, true); err != nil {
		return err
	}
	a.lines = append(a.lines, fmt.Sprintf("# on a tmpfs of %d bytes, %d of them free", size, rest))
	c := v.call()
	c.within = fullLimit
	r, err := a.do(ctx, c)
	if err != nil || a.broken {
		return err
	}
	if r.code != 0 && !saysFull.MatchString(r.err) {
		a.found("the disk is full, and the error does not say so: %v", r)
	}
	if err := mountTmpfs(disk, size+room, true); err != nil {
		return err
	}
	a.lines = append(a.lines, "# with room again")
	return a.sound(ctx, v, b, r.code == 0)
}
