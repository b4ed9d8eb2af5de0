package command

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

// No bar goes into what is no terminal, and a missing one can be used.
func TestProgress(t *testing.T) {
	p := newPrinter(io.Discard, &bytes.Buffer{}).newProgress()
	if p != nil {
		t.Fatal("a bar for a buffer")
	}
	p.report("reading", 1, 2)
	p.end()

	var out bytes.Buffer
	p = newProgress(&out)
	for i := range 100 {
		p.report("reading", int64(i), 100)
	}
	p.report("storing", 0, 0)
	p.end()
	p.end()
	if s := out.String(); !strings.Contains(s, "reading") || strings.Contains(s, "\n") || len(s) > 4000 {
		t.Errorf("%d bytes: %q", len(s), s)
	}
}

// Bars of bytes show them as such.
func TestProgressOfBytes(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(&out)
	p.bytes("store", 3_000_000, 5_000_000)
	p.end()
	if s := out.String(); !strings.Contains(s, "store") || !strings.Contains(s, "MB") {
		t.Errorf("%q", s)
	}
	(*progress)(nil).bytes("store", 1, 2)
}
