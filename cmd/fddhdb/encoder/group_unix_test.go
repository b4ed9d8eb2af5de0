//go:build unix

package encoder

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Of a program that hangs nothing is left, neither the program nor the child that holds its pipes
// open, whether it is late or its encoder is closed.
func TestNothingIsLeft(t *testing.T) {
	for _, late := range []bool{true, false} {
		timeout := time.Hour
		if late {
			timeout = 300 * time.Millisecond // after the first input
		}
		e := openEncoder(t, "lines", timeout)
		_, err := vector(t.Context(), e, "have a child")
		check(t, err)
		running := e.making.(*runner).running.process
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := vector(ctx, e, "hang")
			ended <- err
		}()
		if !late {
			for len(e.turn) == 0 { // until it has begun
				runtime.Gosched()
			}
			cancel()
		}
		err = <-ended
		e.Close()
		cancel()
		child := 0
		if _, scan := fmt.Sscanf(running.stderr.String(), "child %d", &child); scan != nil {
			t.Fatalf("%q: %v", running.stderr.String(), scan)
		}
		if late {
			fails(t, err, Late, fmt.Sprintf("after each line): child %d", child))
		}
		for _, pid := range []int{running.cmd.Process.Pid, child} {
			// a kill takes a moment
			for until := time.Now().Add(time.Minute); alive(pid); time.Sleep(time.Millisecond) {
				if time.Now().After(until) {
					t.Fatalf("late %v: process %d is there", late, pid)
				}
			}
		}
	}
}

// A program goes on while threads of this process end, although it is to end with its parent, which for
// the kernel is one of them.
func TestProgramOutlivesThreads(t *testing.T) {
	e := openEncoder(t, "lines", time.Hour)
	_, err := vector(t.Context(), e, "first")
	check(t, err)
	program := e.making.(*runner).running.process
	var all, ended sync.WaitGroup
	const threads = 100 // as many at a time as nothing else has: the idle ones, and new ones
	all.Add(threads)
	for range threads {
		ended.Go(func() {
			runtime.LockOSThread() // the thread ends with the goroutine
			all.Done()
			all.Wait()
		})
	}
	ended.Wait()
	_, err = vector(t.Context(), e, "second")
	check(t, err)
	if e.making.(*runner).running.process != program {
		t.Error("the program was started again")
	}
}

// alive reports whether there is a process that has not ended. One that has ended may wait for its
// parent, or for init.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z")
}
