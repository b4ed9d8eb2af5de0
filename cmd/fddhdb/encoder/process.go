package encoder

import (
	"errors"
	"io"
	"os/exec"
	"path/filepath"
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
}

// start starts the program.
func (p *Program) start() (*process, error) {
	cmd := exec.Command(p.path(), p.Command[1:]...)
	s := &process{cmd: cmd, stderr: &tail{}}
	cmd.Dir, cmd.Stderr = p.Dir, s.stderr
	cmd.WaitDelay = endGrace // processes outside of the group may hold its stderr open
	ownGroup(cmd)
	var err error
	if s.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if s.stdout, err = cmd.StdoutPipe(); err != nil {
		return nil, errors.Join(err, s.stdin.Close())
	}
	if err := cmd.Start(); err != nil {
		return nil, err // Start closes both
	}
	return s, nil
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

// Find returns an error if there is no such program.
func (p *Program) Find() error {
	_, err := exec.LookPath(p.path())
	return err
}

// stop closes the input of the process, and kills it with its group if it has not ended after the
// grace. It returns how it ended, and then its stderr is complete.
func (p *process) stop(grace time.Duration) error {
	_ = p.stdin.Close() // it may be closed
	if grace == 0 {
		killGroup(p.cmd)
	}
	ended := make(chan error, 1)
	go func() { ended <- p.cmd.Wait() }()
	timeout := time.NewTimer(grace)
	defer timeout.Stop()
	var err error
	select {
	case err = <-ended:
	case <-timeout.C:
		killGroup(p.cmd)
		err = <-ended
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
