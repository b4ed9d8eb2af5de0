package mcp

import (
	"bufio"
	"context"
	"encoding/json"
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

// What is no message is answered by an error, and the conversation goes on; it ends with its input, when all
// is answered.
func TestLines(t *testing.T) {
	s, err := New(newDatabase(t), Options{Collection: "notes"})
	check(t, err)
	call := `{"jsonrpc":"2.0","id":"%","method":"tools/call","params":{"name":"count_items","arguments":{}}}`
	for name, c := range map[string]struct{ line, want string }{
		"garbage":      {"garbage", "no JSON: invalid character 'g'"},
		"no number":    {`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"k":NaN}}`, "no JSON"},
		"half":         {`{"jsonrpc":"2.0","id":7,`, "no JSON: unexpected end"},
		"array":        {`[` + call + `]`, "no message of JSON-RPC 2.0"},
		"no message":   {`{"id":7}`, "no message of JSON-RPC 2.0"},
		"null":         {`null`, "no message of JSON-RPC 2.0"},
		"long":         {strings.Repeat("x", maxLine+1), "at most 16777216 bytes"},
		"no method":    {`{"jsonrpc":"2.0","id":7,"method":"fly"}`, "method not found"},
		"no params":    {`{"jsonrpc":"2.0","id":7,"method":"tools/call"}`, "params"},
		"blank":        {"  \t\r", ""},
		"deep nesting": {strings.Repeat(`{"a":`, 20_000), "no JSON"},
	} {
		in := strings.Join([]string{`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`,
			`{"jsonrpc":"2.0","method":"notifications/initialized"}`, c.line, call}, "\n") // without an end
		var out strings.Builder
		check(t, s.Run(t.Context(), strings.NewReader(in), &out))
		answers := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		want := 3
		if c.want == "" {
			want = 2
		}
		if len(answers) != want || !strings.Contains(out.String(), c.want) ||
			!strings.Contains(out.String(), `{\"count\":20}`) {
			t.Errorf("%s: %.2000s", name, out.String())
		}
		for _, line := range answers {
			if !json.Valid([]byte(line)) || len(line) > defaultBytes {
				t.Errorf("%s: %s", name, line)
			}
		}
	}
}
