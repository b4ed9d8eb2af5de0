package natsproc

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
)

// process is one run of one server.
type process struct {
	cmd    *exec.Cmd
	exited chan struct{} // closed when the process is gone and waited for
	err    error         // how it ended; read only after exited
}

// startProcess runs this executable as a server. The log is appended to, so that it tells the story of all
// runs.
func startProcess(configFile, logFile string) (*process, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("natsproc: %w", err)
	}
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("natsproc: %w", err)
	}
	defer log.Close() // the child has its own descriptor

	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), configVariable+"="+configFile)
	cmd.Stdout, cmd.Stderr = log, log
	OwnGroup(cmd)
	dieWithParent(cmd)
	// The parent never writes to it. The server exits when our end closes, at the latest when this process is
	// gone.
	if _, err := cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("natsproc: %w", err)
	}
	p := &process{cmd: cmd, exited: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		// The parent of a process is a thread, for dieWithParent. It must live as long as the server does.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			close(p.exited)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("natsproc: start server: %w", err)
	}
	return p, nil
}

// running reports whether the process has not ended yet.
func (p *process) running() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// kill ends the process at once and waits until it is gone and its ports are free. A paused process dies as
// well.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // fails only if it is gone already
	<-p.exited
}
