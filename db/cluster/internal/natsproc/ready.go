package natsproc

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

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
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+loopback(g.ports[i].monitor)+"/healthz", nil)
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
	name := "natsproc_ready_" + rand.Text()
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
