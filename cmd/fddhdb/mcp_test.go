package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/clitest"
	"github.com/fddhdb/fddhdb/db/attach"
)

// An assistant is a process of mcp and its client.
type assistant struct {
	*mcp.ClientSession
	cmd    *exec.Cmd
	stderr bytes.Buffer
}

func newAssistant(t *testing.T, args ...string) *assistant {
	t.Helper()
	a := &assistant{cmd: exec.Command("fddhdb", append([]string{"mcp"}, args...)...)}
	a.cmd.Stderr = &a.stderr
	c, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(t.Context(),
		&mcp.CommandTransport{Command: a.cmd}, nil)
	if err != nil {
		t.Fatalf("%v: %s", err, a.stderr.String())
	}
	a.ClientSession = c
	t.Cleanup(func() { _ = c.Close() }) // it may have been killed
	return a
}

// call calls a tool, and returns the text of its answer, and whether that is an error.
func (a *assistant) call(t *testing.T, tool, arguments string) (text string, failed bool) {
	t.Helper()
	r, err := a.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(arguments)})
	if err != nil {
		return err.Error(), true
	}
	return r.Content[0].(*mcp.TextContent).Text, r.IsError
}

func verb(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("fddhdb", args...).CombinedOutput()
	if err != nil {
		t.Errorf("fddhdb %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// Three assistants and verbs use one database at once. The one that owns the folder is killed: the others go
// on, and what was acknowledged is there.
func TestAssistants(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state"))
	notes := filepath.Join(dir, "notes.db")
	verb(t, "init", notes, "--modality", "text:5")
	verb(t, "encoder", notes, "--set", "text=letters")
	owner := newAssistant(t, notes, "--write") // the first one
	others := []*assistant{newAssistant(t, notes, "--write"), newAssistant(t, notes, "--write")}
	reader := newAssistant(t, notes)

	const items, killedAt = 40, 10
	stored := make([]int, len(others))
	var all sync.WaitGroup
	killed := make(chan struct{})
	for i, a := range others {
		all.Go(func() {
			for n := range items {
				if n == killedAt && i == 0 {
					if err := owner.cmd.Process.Kill(); err != nil {
						t.Error(err)
					}
					close(killed)
				}
				out, failed := a.call(t, "put_items", fmt.Sprintf(
					`{"items":[{"key":"%d of %d","text":"the fact","words":{"text":"%s"}}]}`, n, i,
					strings.Repeat("x", n+1)))
				if failed {
					t.Errorf("assistant %d, item %d: %s", i, n, out)
					return
				}
				stored[i]++
			}
		})
	}
	all.Go(func() {
		<-killed
		for range 5 {
			verb(t, "put", notes, "of a verb", "--vector", "text=1,2,3,4,5")
			verb(t, "search", notes, "--text", "xx", "-k", "1")
			if out, failed := reader.call(t, "search", `{"words":"xxxx","include":["payload"]}`); failed {
				t.Errorf("the reader: %s", out)
			}
		}
	})
	all.Wait()
	want := fmt.Sprintf(`{"count":%d}`, stored[0]+stored[1]+1)
	for i, a := range append(others, reader) {
		if out, failed := a.call(t, "count_items", `{}`); failed || out != want {
			t.Errorf("assistant %d counts %s, want %s", i, out, want)
		}
	}
	if out := verb(t, "count", notes); strings.TrimSpace(out) != fmt.Sprint(stored[0]+stored[1]+1) {
		t.Errorf("count prints %s", out)
	}
	if out, failed := reader.call(t, "put_items", `{"items":[{"key":"x","text":"x"}]}`); !failed {
		t.Errorf("without --write: %s", out)
	}
	for _, a := range append(others, reader) {
		clitest.Check(t, a.Close()) // by the end of its input
		if a.cmd.ProcessState.ExitCode() != 0 || a.stderr.Len() > 0 {
			t.Errorf("%v: %s", a.cmd.ProcessState, a.stderr.String())
		}
	}
	verb(t, "verify", notes, "--deep")
	d, err := attach.Open(t.Context(), notes, attach.Options{}) // nobody has it open any more
	clitest.Check(t, err)
	if d.Own() == nil {
		t.Error("a process has the database open still")
	}
	clitest.Check(t, d.Close())
}

// What is piped in is answered until its end, with nothing else on stdout; what is wrong is said on stderr.
func TestPipedAssistant(t *testing.T) {
	dir := t.TempDir()
	notes := filepath.Join(dir, "notes.db")
	verb(t, "init", notes, "--modality", "text:5")
	in := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
`
	const calls = 50
	for id := range calls {
		in += fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"count_items"}}`, id+2) + "\n"
	}
	c := exec.Command("fddhdb", "mcp", notes)
	c.Stdin = strings.NewReader(in)
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Run(); err != nil || stderr.Len() > 0 {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	answers := strings.Split(strings.TrimSpace(stdout.String()), "\n")
	if len(answers) != calls+1 {
		t.Errorf("%d answers: %.2000s", len(answers), stdout.String())
	}
	for _, line := range answers {
		if !json.Valid([]byte(line)) || !strings.Contains(line, `"result"`) {
			t.Errorf("%s", line)
		}
	}
	for want, args := range map[string][]string{
		"fddhdb init":       {"mcp", filepath.Join(dir, "nothing.db")},
		"no collection":     {"mcp", notes, "--collection", "x"},
		"cannot be reached": {"mcp", "http://127.0.0.1:1/notes"},
		"needs the folder":  {"mcp"},
	} {
		c := exec.Command("fddhdb", args...)
		c.Stdin = strings.NewReader(in)
		stdout.Reset()
		stderr.Reset()
		c.Stdout, c.Stderr = &stdout, &stderr
		if err := c.Run(); err == nil || stdout.Len() > 0 || !strings.Contains(stderr.String(), want) {
			t.Errorf("%q: %v, %s, %s", args, err, stdout.String(), stderr.String())
		}
	}
}
