package freemem

import (
	"math"
	"testing"
	"testing/fstest"
)

func TestWhatTheMachineAndItsGroupsLeave(t *testing.T) {
	const meminfo = "MemTotal:       24000000 kB\nMemFree:          100000 kB\nMemAvailable:   20000000 kB\n"
	for what, tc := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"nothing known": {nil, math.MaxInt64},
		"a machine":     {map[string]string{"proc/meminfo": meminfo}, 20000000 << 10},
		"no limit": {map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/user\n",
			"sys/fs/cgroup/user/memory.max": "max\n", "sys/fs/cgroup/user/memory.current": "77\n",
		}, 20000000 << 10},
		"a group": {map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a/b\n",
			"sys/fs/cgroup/a/b/memory.max": "1000000\n", "sys/fs/cgroup/a/b/memory.current": "700000\n",
			"sys/fs/cgroup/a/b/memory.stat": "anon 1\ninactive_file 50000\nactive_file 3000\nfile 99999\n",
		}, 353000},
		"the group around it": {map[string]string{
			"proc/self/cgroup":             "0::/a/b\n",
			"sys/fs/cgroup/a/b/memory.max": "1000000\n", "sys/fs/cgroup/a/b/memory.current": "0\n",
			"sys/fs/cgroup/a/memory.max": "900000\n", "sys/fs/cgroup/a/memory.current": "800000\n",
		}, 100000},
		"a container": {map[string]string{
			"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "5000\n",
			"sys/fs/cgroup/memory.current": "1000\n",
		}, 4000},
		"version 1": {map[string]string{
			"proc/self/cgroup":                           "3:cpu,cpuacct:/x\n4:memory:/docker/0123\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "8000\n",
			"sys/fs/cgroup/memory/memory.usage_in_bytes": "3000\n",
			"sys/fs/cgroup/memory/memory.stat":           "total_inactive_file 500\n",
		}, 5500},
		"nonsense": {map[string]string{"proc/meminfo": "MemAvailable: lots kB\n",
			"proc/self/cgroup": "0\n::\n"}, math.MaxInt64},
	} {
		root := fstest.MapFS{}
		for name, text := range tc.files {
			root[name] = &fstest.MapFile{Data: []byte(text)}
		}
		if got := left(root); got != tc.want {
			t.Errorf("%s: %d bytes, not %d", what, got, tc.want)
		}
	}
}
