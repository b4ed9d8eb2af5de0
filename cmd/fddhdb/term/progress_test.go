package term

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

// Only a terminal gets a bar, and a nil Progress can be used.
func TestProgress(t *testing.T) {
	p := NewPrinter(io.Discard, &bytes.Buffer{}).NewProgress()
	if p != nil {
		t.Fatal("a bar for a buffer")
	}
	p.Report("reading", 1, 2)
	p.End()

	var out bytes.Buffer
	p = NewProgress(&out)
	for i := range 100 {
		p.Report("reading", int64(i), 100)
	}
	p.Report("storing", 0, 0)
	p.End()
	p.End()
	if s := out.String(); !strings.Contains(s, "reading") || strings.Contains(s, "\n") || len(s) > 4000 {
		t.Errorf("%d bytes: %q", len(s), s)
	}
}

// Bars of bytes show them as such.
func TestProgressOfBytes(t *testing.T) {
	var out bytes.Buffer
	p := NewProgress(&out)
	p.Bytes("store", 3_000_000, 5_000_000)
	p.End()
	if s := out.String(); !strings.Contains(s, "store") || !strings.Contains(s, "MB") {
		t.Errorf("%q", s)
	}
	(*Progress)(nil).Bytes("store", 1, 2)
}

// A bar of rows shows how many a second.
func TestProgressOfRows(t *testing.T) {
	var out bytes.Buffer
	p := NewProgress(&out)
	p.Report("reading", 1000, 1_000_000)
	p.End()
	if s := out.String(); !strings.Contains(s, "1000/1000000") || !strings.Contains(s, " /s)") && !strings.Contains(s, " /min)") && !strings.Contains(s, " /hr)") {
		t.Errorf("%q", s)
	}
}
