package natsproc_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fddhdb/fddhdb/db/cluster/internal/natsproc"
)

var ctx = context.Background()

// election bounds how long a stream is without a leader after its leader has
// died. NATS waits 4 to 10 seconds for a heartbeat before it holds an election,
// and a split vote takes a second one.
const election = 20 * time.Second

// start runs three servers, or as many as config says, for the test.
func start(t *testing.T, config natsproc.Config) *natsproc.Group {
	t.Helper()
	if config.Servers == 0 {
		config.Servers = 3
	}
	config.Dir = t.TempDir()
	g, err := natsproc.Start(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g
}

// client connects to the servers with these numbers and no others.
func client(t *testing.T, g *natsproc.Group, servers ...int) jetstream.JetStream {
	t.Helper()
	var urls []string
	for _, i := range servers {
		urls = append(urls, g.URL(i))
	}
	nc, err := nats.Connect(strings.Join(urls, ","),
		nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond), nats.IgnoreDiscoveredServers())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// createLog makes the stream LOG with three replicas.
func createLog(t *testing.T, js jetstream.JetStream) {
	t.Helper()
	_, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "LOG", Subjects: []string{"log"},
		Replicas: 3})
	if err != nil {
		t.Fatal(err)
	}
}

// info asks for the state of LOG and does not wait for an election.
func info(js jetstream.JetStream) (*jetstream.StreamInfo, error) {
	once, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	s, err := js.Stream(once, "LOG")
	if err != nil {
		return nil, err
	}
	return s.CachedInfo(), nil
}

// publish puts n messages into LOG.
func publish(t *testing.T, js jetstream.JetStream, n int) {
	t.Helper()
	for range n {
		if _, err := js.Publish(ctx, "log", []byte("message")); err != nil {
			t.Fatal(err)
		}
	}
}

// tryPublish publishes one message and does not wait for an election.
func tryPublish(js jetstream.JetStream) error {
	once, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	_, err := js.Publish(once, "log", []byte("message"), jetstream.WithRetryAttempts(0))
	return err
}

// publishAgain publishes until one message is acknowledged.
func publishAgain(t *testing.T, js jetstream.JetStream) {
	t.Helper()
	eventually(t, election, func() error { return tryPublish(js) })
}

// leader returns the number of the server that leads LOG.
func leader(t *testing.T, g *natsproc.Group, js jetstream.JetStream) int {
	t.Helper()
	lead := -1
	eventually(t, election, func() error {
		info, err := info(js)
		if err != nil {
			return err
		}
		if lead = g.Index(info.Cluster.Leader); lead < 0 {
			return fmt.Errorf("leader %q", info.Cluster.Leader)
		}
		return nil
	})
	return lead
}

// others returns the servers of a group of three without i.
func others(i int) []int {
	return slices.DeleteFunc([]int{0, 1, 2}, func(j int) bool { return j == i })
}

// eventually calls check until it succeeds, for at most the given time.
func eventually(t *testing.T, within time.Duration, check func() error) {
	t.Helper()
	deadline := time.Now().Add(within)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %v: %v", within, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// caughtUp checks that both followers of LOG have all messages.
func caughtUp(js jetstream.JetStream) error {
	info, err := info(js)
	if err != nil {
		return err
	}
	if len(info.Cluster.Replicas) != 2 {
		return fmt.Errorf("%d followers", len(info.Cluster.Replicas))
	}
	for _, r := range info.Cluster.Replicas {
		if !r.Current || r.Lag > 0 {
			return fmt.Errorf("%s is %d messages behind", r.Name, r.Lag)
		}
	}
	return nil
}

// messages returns how many messages LOG holds.
func messages(t *testing.T, js jetstream.JetStream) uint64 {
	t.Helper()
	info, err := info(js)
	if err != nil {
		t.Fatal(err)
	}
	return info.State.Msgs
}

// within returns a context that ends after the given time or with the test.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	c, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return c
}
