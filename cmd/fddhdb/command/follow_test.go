package command

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db/event"
)

// The progress of the operation that is followed is shown; other operations show none.
func TestProgressOfOperations(t *testing.T) {
	var out bytes.Buffer
	p := term.NewProgress(&out)
	showRunning(p, event.OpCompact, []event.RunningOperation{
		{Op: event.OpBackup, Stage: "upload", Done: 1, Total: 2},
		{Op: event.OpCompact, Stage: "rewrite", Done: 3_000_000, Total: 5_000_000},
	})
	p.End()
	if s := out.String(); !strings.Contains(s, "rewrite") || !strings.Contains(s, "MB") || strings.Contains(s, "upload") {
		t.Errorf("%q", s)
	}
	want := errors.New("no")
	if err := follow(nil, nil, event.OpCompact, func() error { return want }); err != want {
		t.Error(err)
	}
}
