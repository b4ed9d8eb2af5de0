package natsproc

import (
	"bytes"
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
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

// Ports come from below the ranges from which Linux, macOS and Windows take the local ports of outgoing
// connections. A port from such a range could be lost while its server is down: to any outgoing connection,
// even to a client that dials the dead server and by chance gets the same number as its own port.
const (
	firstPort = 12000
	endPort   = 32000
)

// freePorts returns the ports of n servers. Nothing listens on them when it returns, so another program can
// still take one; a server that cannot listen says so in its log and exits.
func freePorts(n int) ([]serverPorts, error) {
	var held []net.Listener // until all are found, so that none is found twice
	defer func() {
		for _, l := range held {
			_ = l.Close()
		}
	}()
	next := func() (int, error) {
		var errs error
		for range 100 {
			port := firstPort + rand.IntN(endPort-firstPort)
			l, err := net.Listen("tcp", loopback(port))
			if err == nil {
				held = append(held, l)
				return port, nil
			}
			errs = errors.Join(errs, err)
		}
		return 0, fmt.Errorf("natsproc: no free port: %w", errs)
	}
	ports := make([]serverPorts, n)
	for i := range ports {
		for _, port := range []*int{&ports[i].client, &ports[i].route, &ports[i].monitor} {
			var err error
			if *port, err = next(); err != nil {
				return nil, err
			}
		}
	}
	return ports, nil
}

const (
	startTimeout = 30 * time.Second
	askEvery     = 20 * time.Millisecond
	askTimeout   = 2 * time.Second // for one answer, in case a server is stuck
)

// WaitReady waits until every server says that it is healthy, which means that it knows the meta leader and
// has caught up with its streams, and until a stream with a replica on every server (on five, the most NATS
// allows, if there are more) can be made. It makes such a stream and deletes it again. All servers must run.
// WaitReady returns an error when ctx ends, or at once when it finds that a server has exited; the error
// shows the end of the logs.
func (g *Group) WaitReady(ctx context.Context) error {
	for i := range g.ports {
		if err := g.retry(ctx, func(ctx context.Context) error { return g.healthy(ctx, i) }); err != nil {
			return fmt.Errorf("natsproc: server %d is not healthy: %w\n%s", i, err, g.logTails())
		}
	}
	if err := g.tryStream(ctx); err != nil {
		return fmt.Errorf("natsproc: no stream with %d replicas: %w\n%s", g.replicas(), err, g.logTails())
	}
	return nil
}

// errExited ends retry, as more attempts are of no use.
var errExited = errors.New("server has exited")

// retry calls do until it succeeds, ctx ends or a server has exited. It returns the last error of do, which
// says more than the end of ctx.
func (g *Group) retry(ctx context.Context, do func(context.Context) error) error {
	var last error
	for {
		if err := g.anyExited(); err != nil {
			return err
		}
		once, cancel := context.WithTimeout(ctx, askTimeout)
		err := do(once)
		cancel()
		if err == nil {
			return nil
		}
		if last == nil || ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w; last answer: %w", ctx.Err(), last)
		case <-time.After(askEvery):
		}
	}
}

// anyExited returns an error that names a server which does not run.
func (g *Group) anyExited() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, p := range g.processes {
		if !p.running() {
			return fmt.Errorf("server %d: %w: %v", i, errExited, p.err)
		}
	}
	return nil
}

// healthy asks the monitoring port of server i.
func (g *Group) healthy(ctx context.Context, i int) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet,
		"http://"+loopback(g.ports[i].monitor)+"/healthz", nil)
	if err != nil {
		return err
	}
	req.Close = true // no idle connection, and no goroutine for it, is left
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, strings.TrimSpace(string(body)))
	}
	return err
}

// replicas is how many replicas a stream of this group can have.
func (g *Group) replicas() int { return min(g.config.Servers, 5) }

// tryStream makes a stream with as many replicas as possible and deletes it.
func (g *Group) tryStream(ctx context.Context) error {
	nc, err := nats.Connect(strings.Join(g.URLs(), ","), g.config.ClientOptions...)
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	name := "natsproc_ready_" + crand.Text()
	err = g.retry(ctx, func(ctx context.Context) error {
		_, err := js.CreateStream(ctx, jetstream.StreamConfig{
			Name:     name,
			Subjects: []string{name},
			Storage:  jetstream.MemoryStorage,
			Replicas: g.replicas(),
		})
		return err
	})
	if err != nil {
		return err
	}
	return g.retry(ctx, func(ctx context.Context) error {
		err := js.DeleteStream(ctx, name)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			return nil
		}
		return err
	})
}

// tailLines is how much of each log an error shows.
const tailLines = 15

// logTails returns the last lines of the log of every server.
func (g *Group) logTails() string {
	var b strings.Builder
	for i := range g.ports {
		fmt.Fprintf(&b, "--- %s\n", g.config.logFile(i))
		log, err := os.ReadFile(g.config.logFile(i))
		if err != nil {
			fmt.Fprintf(&b, "%v\n", err)
			continue
		}
		lines := bytes.Split(bytes.TrimSpace(log), []byte("\n"))
		for _, line := range lines[max(0, len(lines)-tailLines):] {
			fmt.Fprintf(&b, "%s\n", line)
		}
	}
	return b.String()
}
