package freemem

import (
	"io/fs"
	"math"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"
)

func system() (bytes int64, known bool) {
	least := left(os.DirFS("/"))
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_AS, &limit) == nil && limit.Cur < math.MaxInt64 {
		if pages := numbers(os.DirFS("/"), "proc/self/statm"); len(pages) > 0 {
			least = min(least, int64(limit.Cur)-pages[0]*int64(os.Getpagesize()))
		}
	}
	return max(least, 0), least < math.MaxInt64
}

// left returns the bytes that the machine and the control groups of the process leave.
// root is the root of the file system.
func left(root fs.FS) int64 {
	least := int64(math.MaxInt64)
	if n, ok := field(root, "proc/meminfo", "MemAvailable:"); ok {
		least = n << 10
	}
	b, _ := fs.ReadFile(root, "proc/self/cgroup")
	for line := range strings.Lines(string(b)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3) // number, controllers, group
		if len(parts) < 3 {
			continue
		}
		group := path.Clean("/" + parts[2])
		if parts[1] == "" { // version 2
			least = min(least, leftInGroups(root, "sys/fs/cgroup", group, "memory.max", "memory.current",
				"inactive_file", "active_file"))
		}
		for controller := range strings.SplitSeq(parts[1], ",") {
			if controller == "memory" {
				least = min(least, leftInGroups(root, "sys/fs/cgroup/memory", group, "memory.limit_in_bytes",
					"memory.usage_in_bytes",
					"total_inactive_file", "total_active_file"))
			}
		}
	}
	return least
}

// leftInGroups returns the least rest of a control group and the groups around it.
// Cached files of a group can be dropped, so they count as free.
func leftInGroups(root fs.FS, mount, group, limit, usage string, files ...string) int64 {
	least := int64(math.MaxInt64)
	for {
		dir := path.Join(mount, group)
		max, used := numbers(root, path.Join(dir, limit)), numbers(root, path.Join(dir, usage))
		if len(max) == 1 && len(used) == 1 { // a file with "max" has no number
			free := max[0] - used[0]
			for _, name := range files {
				n, _ := field(root, path.Join(dir, "memory.stat"), name)
				free += n
			}
			least = min(least, free)
		}
		if group == "/" {
			return least
		}
		group = path.Dir(group) // inside a container its own group may have another name
	}
}

// numbers returns the numbers of a small file.
func numbers(root fs.FS, name string) (all []int64) {
	b, _ := fs.ReadFile(root, name)
	for word := range strings.FieldsSeq(string(b)) {
		if n, err := strconv.ParseInt(word, 10, 64); err == nil {
			all = append(all, n)
		}
	}
	return all
}

// field returns the number that follows the word field at the beginning of a line.
func field(root fs.FS, file, name string) (int64, bool) {
	b, _ := fs.ReadFile(root, file)
	for line := range strings.Lines(string(b)) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == name {
			n, err := strconv.ParseInt(words[1], 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}
