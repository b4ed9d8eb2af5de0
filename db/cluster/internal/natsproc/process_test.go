package natsproc_test

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/fddhdb/fddhdb/db/cluster/internal/natsproc"
)

// A server must not outlive the program that started it, however that ended.
func TestServerDiesWithItsParent(t *testing.T) {
	t.Parallel()
	for _, paused := range []bool{false, true} {
		t.Run(fmt.Sprintf("paused=%v", paused), func(t *testing.T) {
			t.Parallel()
			parent := exec.Command(os.Args[0])
			parent.Env = append(os.Environ(), parentVariable+"="+t.TempDir())
			out, err := parent.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := parent.Start(); err != nil {
				t.Fatal(err)
			}
			defer parent.Wait()
			defer parent.Process.Kill()
			line, err := bufio.NewReader(out).ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			var pid int
			if _, err := fmt.Sscan(line, &pid); err != nil {
				t.Fatalf("the parent says %q", line)
			}
			server, err := os.FindProcess(pid)
			if err != nil {
				t.Fatal(err)
			}
			if paused {
				stop(t, server)
			}
			if err := parent.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			eventually(t, election, func() error {
				if exists(server) {
					return errors.New("the server lives on")
				}
				return nil
			})
		})
	}
}

// SIGTERM is how a supervisor ends a server, and such an end is not a failure.
func TestServerEndsCleanlyOnSIGTERM(t *testing.T) {
	t.Parallel()
	g := start(t, natsproc.Config{Servers: 1})
	server, err := os.FindProcess(g.Pid(0))
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Signal(syscall.SIGTERM); err != nil {
		t.Skip(err) // Windows has no such signal
	}
	eventually(t, election, func() error {
		err := g.WaitReady(within(t, election))
		if err == nil {
			return errors.New("the server still answers")
		}
		if !strings.Contains(err.Error(), "Server Exiting") {
			return fmt.Errorf("the log does not tell of a clean end: %w", err)
		}
		return nil
	})
}

func TestRestartKeepsAddressAndData(t *testing.T) {
	t.Parallel()
	g := start(t, natsproc.Config{Servers: 1})
	url, pid := g.URL(0), g.Pid(0)
	js := client(t, g, 0)
	kv := makeBucket(t, js)
	if _, err := kv.PutString(ctx, "key", "value"); err != nil {
		t.Fatal(err)
	}
	if err := g.Restart(0); err != nil {
		t.Fatal(err)
	}
	if err := g.WaitReady(within(t, election)); err != nil {
		t.Fatal(err)
	}
	if g.URL(0) != url || g.Pid(0) == pid {
		t.Errorf("before: %s, process %d; after: %s, process %d", url, pid, g.URL(0), g.Pid(0))
	}
	eventually(t, election, func() error {
		e, err := kv.Get(ctx, "key")
		if err == nil && string(e.Value()) != "value" {
			err = fmt.Errorf("value %q", e.Value())
		}
		return err
	})
}

func TestExtraConfigAndClientOptions(t *testing.T) {
	t.Parallel()
	g := start(t, natsproc.Config{
		Servers:       1,
		ExtraConfig:   `authorization { user: "ann", password: "secret" }`,
		ClientOptions: []nats.Option{nats.UserInfo("ann", "secret")},
	})
	if nc, err := nats.Connect(g.URL(0)); !errors.Is(err, nats.ErrAuthorization) {
		if err == nil {
			nc.Close()
		}
		t.Errorf("connect without a password: %v", err)
	}
}

func TestStartSaysWhyAServerDoesNotRun(t *testing.T) {
	t.Parallel()
	_, err := natsproc.Start(ctx,
		natsproc.Config{Dir: t.TempDir(), Servers: 1, ExtraConfig: "no_such_option: 7"})
	if err == nil || !strings.Contains(err.Error(), "no_such_option") {
		t.Errorf("start with a bad configuration: %v", err)
	}
}

func TestStartRejectsIncompleteConfig(t *testing.T) {
	for _, c := range []natsproc.Config{{Servers: 1}, {Dir: t.TempDir()}} {
		if g, err := natsproc.Start(ctx, c); err == nil {
			g.Close()
			t.Errorf("%+v was accepted", c)
		}
	}
}

func TestRouteViaThatFails(t *testing.T) {
	want := errors.New("no proxy today")
	_, err := natsproc.Start(ctx, natsproc.Config{Dir: t.TempDir(), Servers: 2,
		RouteVia: func(int, int, string) (string, error) { return "", want }})
	if !errors.Is(err, want) {
		t.Errorf("start: %v", err)
	}
}

func TestNothingRunsAfterClose(t *testing.T) {
	t.Parallel()
	g := start(t, natsproc.Config{Servers: 1})
	addr := strings.TrimPrefix(g.URL(0), "nats://")
	g.Close()
	g.Close()
	if c, err := net.Dial("tcp", addr); err == nil {
		c.Close()
		t.Error("a closed group still listens")
	}
	if g.Restart(0) == nil {
		t.Error("a closed group has restarted a server")
	}
}
