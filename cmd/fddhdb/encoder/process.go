package encoder

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"
)

// A process is a program that has been started. On Unix it has a process group of its own, so that
// the processes that it starts end with it, and an interrupt from the keyboard does not reach it
// before this process has seen it.
type process struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout io.ReadCloser
	stderr *tail

	reap  chan struct{} // closed by stop: nobody reads stdout any more
	ended chan error    // how it ended, once it was reaped
}

// insideVariable is set in the environment of every program. A program that searches its
// own database by a text would otherwise start itself without end.
const insideVariable = "FDDHDB_ENCODER"

var errInside = errors.New(
	"an encoder starts no encoder, as that could be itself: let its program search by --vector or --vectors")

// start starts the program.
func (p *Program) start() (*process, error) {
	if os.Getenv(insideVariable) != "" {
		return nil, errInside
	}
	cmd := exec.Command(p.path(), p.Command[1:]...)
	s := &process{cmd: cmd, stderr: &tail{}, reap: make(chan struct{}), ended: make(chan error, 1)}
	cmd.Dir, cmd.Stderr, cmd.Env = p.Dir, s.stderr, append(os.Environ(), insideVariable+"=1")
	cmd.WaitDelay = endGrace // processes outside of the group may hold its stderr open
	ownGroup(cmd)
	endWithParent(cmd)
	var err error
	if s.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if s.stdout, err = cmd.StdoutPipe(); err != nil {
		return nil, errors.Join(err, s.stdin.Close())
	}
	started := make(chan error, 1)
	go func() {
		// For endWithParent the parent of a process is a thread, which has to live as long.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start() // an error closes both pipes
		started <- err
		if err == nil {
			<-s.reap
			s.ended <- cmd.Wait()
		}
	}()
	return s, <-started
}

// path returns the program as exec wants it. One with a separator in its name is looked for from Dir
// on, as its arguments are.
func (p *Program) path() string {
	name := p.Command[0]
	if p.Dir != "" && !filepath.IsAbs(name) && strings.ContainsRune(filepath.ToSlash(name), '/') {
		return filepath.Join(p.Dir, name)
	}
	return name
}

// stop closes the input of the process, and kills it with its group if it has not ended after the
// grace. It returns how it ended, and then its stderr is complete.
func (p *process) stop(grace time.Duration) error {
	_ = p.stdin.Close() // it may be closed
	if grace == 0 {
		killGroup(p.cmd)
	}
	close(p.reap)
	timeout := time.NewTimer(grace)
	defer timeout.Stop()
	var err error
	select {
	case err = <-p.ended:
	case <-timeout.C:
		killGroup(p.cmd)
		err = <-p.ended
	}
	killGroup(p.cmd) // what it has left behind
	return err
}

// tail keeps the end of its input.
type tail struct {
	mu sync.Mutex
	b  []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p[max(0, len(p)-keptStderr):]...)
	t.b = t.b[max(0, len(t.b)-keptStderr):]
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(strings.ToValidUTF8(string(t.b), "�"))
}
