package freemem

import "golang.org/x/sys/unix"

func system() (bytes int64, known bool) {
	n, err := unix.SysctlUint64("hw.memsize")
	return int64(n), err == nil
}
