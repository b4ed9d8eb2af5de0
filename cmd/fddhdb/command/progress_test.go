package command

import (
	"bytes"
	"strings"
	"testing"
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
