package command

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/db/event"
)

// No bar goes into what is no terminal, and a missing one can be used.
func TestProgress(t *testing.T) {
	p := newTestEnv().newProgress()
	if p != nil {
		t.Fatal("a bar for a buffer")
	}
	p.report("reading", 1, 2)
	p.end()

	var out bytes.Buffer
	p = &progress{out: &out}
	for i := range 100 {
		p.report("reading", i, 100)
	}
	p.report("storing", 0, 0)
	p.end()
	p.end()
	if s := out.String(); !strings.Contains(s, "reading") || strings.Contains(s, "\n") || len(s) > 4000 {
		t.Errorf("%d bytes: %q", len(s), s)
	}
}

// What goes on in a database is shown as it says, and what else goes on there is not.
func TestProgressOfOperations(t *testing.T) {
	var out bytes.Buffer
	p := &progress{out: &out}
	p.running(event.OpCompact, []event.RunningOperation{
		{Op: event.OpBackup, Stage: "upload", Done: 1, Total: 2},
		{Op: event.OpCompact, Stage: "rewrite", Done: 3_000_000, Total: 5_000_000},
	})
	p.end()
	if s := out.String(); !strings.Contains(s, "rewrite") || !strings.Contains(s, "MB") || strings.Contains(s, "upload") {
		t.Errorf("%q", s)
	}
	want := errors.New("no")
	if err := (*progress)(nil).follow(nil, event.OpCompact, func() error { return want }); err != want {
		t.Error(err)
	}
}

// Bars of bytes show them as such.
func TestProgressOfBytes(t *testing.T) {
	var out bytes.Buffer
	p := &progress{out: &out}
	p.bytes("store", 3_000_000, 5_000_000)
	p.end()
	if s := out.String(); !strings.Contains(s, "store") || !strings.Contains(s, "MB") {
		t.Errorf("%q", s)
	}
	(*progress)(nil).bytes("store", 1, 2)
}
