package natsproc

import (
	"context"
	"fmt"
	"sync"
	"syscall"
	"time"
)

// Group is a number of NATS servers that form a cluster. Servers are numbered from 0. All methods may be
// called from any goroutine; calls that start or end servers wait for each other.
type Group struct {
	config Config
	ports  []serverPorts

	mu        sync.Mutex
	processes []*process // the latest run of each server; guarded by mu
	closed    bool       // guarded by mu
}

// Start runs the servers of config and waits until WaitReady succeeds, for at most 30 seconds or until ctx
// ends. If it fails, no server is left and the error shows the end of their logs.
func Start(ctx context.Context, config Config) (*Group, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	ports, err := freePorts(config.Servers)
	if err != nil {
		return nil, err
	}
	g := &Group{config: config, ports: ports, processes: make([]*process, config.Servers)}
	for i := range ports {
		if err := config.writeConfig(i, ports); err != nil {
			return nil, err
		}
	}
	for i := range ports {
		if err := g.Restart(i); err != nil {
			g.Close()
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := g.WaitReady(ctx); err != nil {
		g.Close()
		return nil, err
	}
	return g, nil
}

// URLs returns the client address of every server, as nats:// URLs. The slice is the caller's.
func (g *Group) URLs() []string {
	urls := make([]string, len(g.ports))
	for i := range urls {
		urls[i] = g.URL(i)
	}
	return urls
}

// URL returns the client address of server i. It stays the same when the server restarts.
func (g *Group) URL(i int) string { return "nats://" + loopback(g.ports[i].client) }

// Name returns the NATS name of server i.
func (g *Group) Name(i int) string { return serverName(i) }

// Index returns the number of the server with this NATS name, or -1. Streams name their leader so.
func (g *Group) Index(name string) int {
	for i := range g.ports {
		if serverName(i) == name {
			return i
		}
	}
	return -1
}

// Kill ends server i as a power failure would, but for the page cache of the operating system, which
// survives. It returns when the process is gone.
func (g *Group) Kill(i int) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.processes[i].running() {
		return fmt.Errorf("natsproc: kill: server %d does not run", i)
	}
	g.processes[i].kill()
	return nil
}

// End ends server i in good order, by SIGTERM, and returns when the process is gone. A paused server is
// killed.
func (g *Group) End(i int) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := g.processes[i]
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("natsproc: end server %d: %w", i, err)
	}
	select {
	case <-p.exited:
	case <-time.After(startTimeout):
		p.kill()
	}
	return nil
}

// Pause stops server i with SIGSTOP: its connections stay open, and it neither reads nor answers until
// Resume. On a busy machine the server may still do some work after Pause has returned. Where there is no
// such signal, as on Windows, the error is errors.ErrUnsupported.
func (g *Group) Pause(i int) error { return g.signal(i, "pause", (*process).pause) }

// Resume ends Pause.
func (g *Group) Resume(i int) error { return g.signal(i, "resume", (*process).resume) }

func (g *Group) signal(i int, what string, send func(*process) error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := send(g.processes[i]); err != nil {
		return fmt.Errorf("natsproc: %s server %d: %w", what, i, err)
	}
	return nil
}

// Restart starts server i again with its old ports and its old store. If the server still runs, it is killed
// first. Restart does not wait until the server answers; use WaitReady for that.
func (g *Group) Restart(i int) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return fmt.Errorf("natsproc: restart server %d: group is closed", i)
	}
	if old := g.processes[i]; old != nil {
		old.kill()
	}
	p, err := startProcess(g.config.configFile(i), g.config.logFile(i))
	if err != nil {
		return err
	}
	g.processes[i] = p
	return nil
}

// Close kills every server and waits until all are gone. Their folders stay. A second Close does nothing.
func (g *Group) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	for _, p := range g.processes {
		if p != nil {
			p.kill()
		}
	}
}
