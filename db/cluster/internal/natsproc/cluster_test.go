package natsproc_test

import (
	"errors"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/db/cluster/internal/natsproc"
)

func TestStreamGoesOnAfterItsLeaderIsKilled(t *testing.T) {
	t.Parallel()
	g := start(t, natsproc.Config{})
	js := client(t, g, 0, 1, 2)
	createLog(t, js)
	publish(t, js, 50)

	dead := leader(t, g, js)
	if err := g.Kill(dead); err != nil {
		t.Fatal(err)
	}
	if err := g.Kill(dead); err == nil {
		t.Error("a dead server was killed again without an error")
	}
	publishAgain(t, js)
	if now := leader(t, g, js); now == dead {
		t.Errorf("server %d leads and is dead", now)
	}
	publish(t, js, 50)

	// Readiness includes that the server has caught up: the next to die may be
	// one of the two that have carried on.
	if err := g.Restart(dead); err != nil {
		t.Fatal(err)
	}
	if err := g.WaitReady(within(t, election)); err != nil {
		t.Fatal(err)
	}
	eventually(t, election, func() error { return caughtUp(js) })
	if got := messages(t, js); got < 101 {
		t.Errorf("the stream holds %d messages of 101 that were acknowledged", got)
	}
}

func TestPausedFollowerDoesNotStopTheOthers(t *testing.T) {
	t.Parallel()
	g := start(t, natsproc.Config{})
	all := client(t, g, 0, 1, 2)
	createLog(t, all)
	lead := leader(t, g, all)
	paused := (lead + 1) % 3
	js := client(t, g, lead)

	if err := g.Pause(paused); errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	publish(t, js, 50)
	if err := g.WaitReady(within(t, 300*time.Millisecond)); err == nil {
		t.Error("a group with a paused server is ready")
	}
	if err := g.Resume(paused); err != nil {
		t.Fatal(err)
	}
	if err := g.WaitReady(within(t, election)); err != nil {
		t.Fatal(err)
	}
	eventually(t, election, func() error { return caughtUp(js) })
}
