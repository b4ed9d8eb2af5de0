package shell

import (
	"context"
	"strings"
	"testing"

	"github.com/peterh/liner"
)

// Nothing in completion, history or editing of lines ends the shell.
func TestShellOutlivesItsEditor(t *testing.T) {
	s, stderr := testDialogue(t)
	host := s.host
	s.host = nil // completion needs it
	if _, words, _ := s.Complete("count --wh", 10); len(words) > 0 {
		t.Error("it completed")
	}
	s.host = host
	if !strings.Contains(stderr.String(), "warning: completion failed: ") {
		t.Errorf("stderr: %q", stderr)
	}

	s.terminal.editor = &liner.State{} // without a reader
	_, err := s.terminal.ask(context.Background(), nil, "")
	if _, failed := err.(*editorError); !failed || !strings.Contains(err.Error(), "press Enter") {
		t.Fatalf("ask: %v", err)
	}
	s.terminal.doWithoutEditor(strings.NewReader("count\n"))
	if line, err := s.terminal.ask(context.Background(), nil, ""); line != "count" || err != nil || s.terminal.cooked.(*testTerminal).applied != 1 {
		t.Errorf("%q, %v", line, err)
	}
}
