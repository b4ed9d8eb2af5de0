//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A call is one command line of fddhdb, run in a folder.
type call struct {
	args   []string
	limits string        // commands of the shell before it, such as "ulimit -n 20"
	env    []string      // variables besides those of the run
	stdin  string        // its input
	stdout string        // the file for its output; empty: the output is kept in the result
	within time.Duration // how long it may take

	// After delay it gets the signals, one after the other. After the first it has to
	// end within grace.
	signals []syscall.Signal
	delay   time.Duration
	grace   time.Duration

	mayCrash bool // memory may run out
}

// line returns the call as a person types it.
func (c *call) line() string {
	words := append([]string{"fddhdb"}, c.args...)
	for i, w := range words {
		if strings.ContainsAny(w, " '\"()<>=*$&;|") || w == "" {
			words[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	line := strings.Join(words, " ")
	if len(c.env) > 0 {
		line = strings.Join(c.env, " ") + " " + line
	}
	if c.limits != "" {
		line = c.limits + "; " + line
	}
	if c.stdin != "" {
		line = fmt.Sprintf("printf %%s %s | %s", strconv.Quote(c.stdin), line)
	}
	if c.stdout != "" {
		line += " > " + c.stdout
	}
	if len(c.signals) > 0 {
		line += fmt.Sprintf("   # %v after %v", c.signals, c.delay.Round(time.Microsecond))
	}
	return line
}

// A result is the end of a call.
type result struct {
	code     int            // exit code; -1 if a signal has ended it
	signal   syscall.Signal // the signal that has ended it
	out, err string
	took     time.Duration // until it ended
	after    time.Duration // from the first signal to the end
	late     bool          // it did not end in time, and was killed
}

func (r *result) String() string {
	end := fmt.Sprintf("exit code %d", r.code)
	if r.late {
		end = "killed by the harness"
	} else if r.code < 0 {
		end = fmt.Sprintf("ended by %v", r.signal)
	}
	return fmt.Sprintf("%s after %.2f s; stderr: %s", end, r.took.Seconds(), brief(r.err))
}

// brief returns the end of an output.
func brief(s string) string {
	s = strings.TrimSpace(s)
	if len(s) > 400 {
		s = "..." + s[len(s)-400:]
	}
	return s
}

// most is how many bytes of an output are kept.
const most = 64 << 20

// A limited keeps the first bytes that are written to it, at most most.
type limited struct{ bytes.Buffer }

func (l *limited) Write(b []byte) (int, error) {
	if rest := most - l.Len(); rest > 0 {
		l.Buffer.Write(b[:min(len(b), rest)])
	}
	return len(b), nil
}

// startCall starts a call in a process group of its own.
func (f *field) startCall(dir string, c *call, stdout, stderr io.Writer, stdin io.Reader) (*exec.Cmd, error) {
	cmd := exec.Command(f.command, c.args...)
	if c.limits != "" {
		cmd = exec.Command("sh", append([]string{"-c", c.limits + `; exec "$@"`, "sh", f.command},
			c.args...)...)
	}
	cmd.Dir, cmd.Env = dir, append(append(os.Environ(), f.env...), c.env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	// A child that keeps the pipes open must not hold us up.
	cmd.WaitDelay = 2 * time.Second
	return cmd, cmd.Start()
}

// do carries a call out. Whatever happens, it leaves no process behind.
func (f *field) do(ctx context.Context, dir string, c call) (*result, error) {
	var out, said limited
	var stdout io.Writer = &out
	if c.stdout != "" {
		w, err := os.OpenFile(filepath.Join("/", c.stdout), os.O_WRONLY|os.O_CREATE, 0o666)
		if err != nil {
			return nil, err
		}
		defer w.Close()
		stdout = w
	}
	begin := time.Now()
	cmd, err := f.startCall(dir, &c, stdout, &said, strings.NewReader(c.stdin))
	if err != nil {
		return nil, err
	}
	group := cmd.Process.Pid
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	r := &result{}
	var signalled time.Time
	next, limit := time.NewTimer(time.Hour), time.NewTimer(c.within)
	defer next.Stop()
	defer limit.Stop()
	rest := c.signals
	if len(rest) > 0 {
		next.Reset(c.delay)
	}
	for done := false; !done; {
		select {
		case err = <-ended:
			done = true
		case <-next.C:
			if signalled.IsZero() {
				signalled = time.Now()
				limit.Reset(c.grace)
			}
			_ = cmd.Process.Signal(rest[0]) // the process may have ended
			if rest = rest[1:]; len(rest) > 0 {
				next.Reset(100 * time.Millisecond)
			}
		case <-limit.C:
			r.late = true
			_ = syscall.Kill(-group, syscall.SIGQUIT) // makes it print its goroutines
			select {
			case err = <-ended:
				done = true
			case <-time.After(2 * time.Second):
				_ = syscall.Kill(-group, syscall.SIGKILL)
			}
		case <-ctx.Done():
			_ = syscall.Kill(-group, syscall.SIGKILL)
			<-ended
			return nil, ctx.Err()
		}
	}
	_ = syscall.Kill(-group, syscall.SIGKILL) // its children, too
	r.took, r.out, r.err = time.Since(begin), out.String(), said.String()
	if !signalled.IsZero() {
		r.after = time.Since(signalled)
	}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		r.code = exit.ExitCode()
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			r.signal = status.Signal()
		}
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return nil, err
	}
	return r, nil
}
