package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Run answers an assistant that writes to in and reads from out, a message a line, until in ends and all is
// answered, or the context ends. It returns nil then.
func (s *Server) Run(ctx context.Context, in io.Reader, out io.Writer) error {
	c := &conversation{in: bufio.NewReader(in), out: out}
	c.less.L = &c.mu
	defer context.AfterFunc(ctx, c.hangUp)()
	err := s.tool.Run(ctx, &mcp.IOTransport{Reader: c, Writer: c})
	if ctx.Err() != nil || errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		err = fmt.Errorf("stdin: a message of JSON-RPC 2.0 is expected on each line: %w", err)
	}
	return err
}

// A conversation passes messages on, and keeps the end of its input back until all calls are answered: the
// transport of the SDK would drop them, and a script can pipe its calls.
type conversation struct {
	in   *bufio.Reader
	line []byte // of which a part has not been read yet
	out  io.Writer

	mu     sync.Mutex
	less   sync.Cond // calls has become less, or hungUp true
	calls  int       // without an answer
	hungUp bool
}

// kindOf tells whether a line is a call, or the answer to one.
func kindOf(line []byte) (isCall, isAnswer bool) {
	var m struct {
		ID     json.RawMessage
		Method *string
	}
	if json.Unmarshal(line, &m) != nil || m.ID == nil || string(m.ID) == "null" {
		return false, false
	}
	return m.Method != nil, m.Method == nil
}

// Read implements io.Reader.
func (c *conversation) Read(b []byte) (int, error) {
	if len(c.line) == 0 {
		line, err := c.in.ReadBytes('\n')
		isCall, _ := kindOf(line)
		c.mu.Lock()
		if isCall {
			c.calls++
		}
		for len(line) == 0 && c.calls > 0 && !c.hungUp {
			c.less.Wait()
		}
		c.mu.Unlock()
		if len(line) == 0 {
			return 0, err
		}
		c.line = line
	}
	n := copy(b, c.line)
	c.line = c.line[n:]
	return n, nil
}

// Write implements io.Writer. Each call has a message.
func (c *conversation) Write(b []byte) (int, error) {
	n, err := c.out.Write(b)
	if _, isAnswer := kindOf(b); isAnswer {
		c.mu.Lock()
		c.calls--
		c.less.Broadcast()
		c.mu.Unlock()
	}
	return n, err
}

func (c *conversation) hangUp() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hungUp = true
	c.less.Broadcast()
}

// Close implements io.Closer. The caller of Run closes what it has given.
func (c *conversation) Close() error {
	c.hangUp()
	return nil
}
