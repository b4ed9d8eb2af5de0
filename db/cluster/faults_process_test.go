//go:build unix

package cluster_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// A nodeProcess is a node as a process, which can be killed, paused and started again.
type nodeProcess struct {
	config nodeConfig
	log    string // file, with the story of all runs

	mu     sync.Mutex
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	exited chan struct{} // closed when the process is gone
	err    error         // how it has ended; read only after exited
	killed bool          // we have ended this run
}

// start starts the process, which is not running.
func (n *nodeProcess) start() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	b, err := json.Marshal(n.config)
	if err != nil {
		return err
	}
	log, err := os.OpenFile(n.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close() // the process has its own descriptor
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), nodeVariable+"="+string(b))
	cmd.Stdout, cmd.Stderr = log, log
	// A group of its own: the kernel continues a paused process when its parent dies.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if n.stdin, err = cmd.StdinPipe(); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	exited := make(chan struct{})
	n.cmd, n.exited, n.killed = cmd, exited, false
	go func() {
		err := cmd.Wait()
		n.mu.Lock()
		n.err = err
		n.mu.Unlock()
		close(exited)
	}()
	return nil
}

// died returns how the process has ended by itself, or nil.
func (n *nodeProcess) died() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cmd == nil || n.killed {
		return nil
	}
	select {
	case <-n.exited:
		return fmt.Errorf("node %s has ended by itself: %v, see %s", n.config.Node, n.err, n.log)
	default:
		return nil
	}
}

// kill ends the process as kill -9 does.
func (n *nodeProcess) kill() error {
	err := n.died()
	n.mu.Lock()
	n.killed = true
	cmd, exited := n.cmd, n.exited
	n.mu.Unlock()
	_ = cmd.Process.Kill()
	<-exited
	return err
}

func (n *nodeProcess) signal(s syscall.Signal) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.cmd.Process.Signal(s)
}

func (n *nodeProcess) pause() error  { return n.signal(syscall.SIGSTOP) }
func (n *nodeProcess) resume() error { return n.signal(syscall.SIGCONT) }

// close has the process end in good order.
func (n *nodeProcess) close() error {
	if err := n.died(); err != nil {
		return err
	}
	n.mu.Lock()
	n.killed = true
	stdin, exited := n.stdin, n.exited
	n.mu.Unlock()
	if err := stdin.Close(); err != nil {
		return err
	}
	select {
	case <-exited:
		n.mu.Lock()
		defer n.mu.Unlock()
		return n.err
	case <-time.After(20 * time.Second):
		_ = n.signal(syscall.SIGQUIT) // the log then has all goroutines
		<-exited
		return errors.New("node " + n.config.Node + " does not end, see " + n.log)
	}
}
