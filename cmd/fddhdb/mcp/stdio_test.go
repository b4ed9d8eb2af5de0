package mcp

import (
	"bufio"
	"context"
	"io"
	"strings"
	"testing"
)

// A conversation ends with its input, or with the context though its input goes on.
func TestRun(t *testing.T) {
	s, err := New(newDatabase(t), Options{Collection: "notes"})
	check(t, err)
	for _, hangUp := range []bool{true, false} {
		in, asks := io.Pipe()
		answers, out := io.Pipe()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := make(chan error)
		go func() { ended <- s.Run(ctx, in, out) }()
		read := bufio.NewReader(answers)
		for _, line := range []struct{ text, want string }{
			{`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`, `"serverInfo"`},
			{`{"jsonrpc":"2.0","method":"notifications/initialized"}`, ""},
			{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"put_items"}}`, "no tool"},
			{`{"jsonrpc":"2.0","id":2,"method":"fly"}`, "error"},
			{`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"count_items","arguments":{}}}`,
				`{\"count\":20}`},
		} {
			_, err := io.WriteString(asks, line.text+"\n")
			check(t, err)
			if line.want == "" {
				continue
			}
			answer, err := read.ReadString('\n')
			if check(t, err); !strings.Contains(answer, line.want) {
				t.Errorf("%s: %s", line.text, answer)
			}
		}
		if hangUp {
			check(t, asks.Close())
		} else {
			cancel()
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
		_ = asks.Close()
	}
}
