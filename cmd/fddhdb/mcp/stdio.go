package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Run answers an assistant that writes to in and reads from out, a message a line, until in ends and all is
// answered, or the context ends. It returns nil then.
func (s *Server) Run(ctx context.Context, in io.Reader, out io.Writer) error {
	c := &conversation{in: bufio.NewReader(in), out: out, hungUp: make(chan struct{})}
	defer context.AfterFunc(ctx, func() { close(c.hungUp) })()
	err := s.tool.Run(ctx, &mcp.IOTransport{Reader: c, Writer: c})
	if ctx.Err() != nil || errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// Bounds of a conversation.
const (
	maxLine    = 16 << 20         // bytes of a message
	settleTime = 10 * time.Second // for calls to be answered after the end of the input
)

// A conversation passes messages on. Unlike the transport of the SDK it answers a line that is no message and
// goes on, and keeps the end of its input back until calls are answered: a script can pipe them.
type conversation struct {
	in   *bufio.Reader
	line []byte // of which a part has not been read yet
	out  io.Writer

	mu      sync.Mutex // guards the fields below, and is held while out is written to
	calls   int        // without an answer
	settled chan struct{}
	hungUp  chan struct{}
}

// Read implements io.Reader.
func (c *conversation) Read(b []byte) (int, error) {
	for len(c.line) == 0 {
		line, err := readLine(c.in)
		if err != nil {
			c.settle()
			return 0, err
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		isCall, why := checkLine(line)
		if why != nil {
			if err := c.refuse(why); err != nil {
				return 0, err
			}
			continue
		}
		if isCall {
			c.mu.Lock()
			c.calls++
			c.mu.Unlock()
		}
		c.line = append(bytes.TrimRight(line, "\r\n"), '\n')
	}
	n := copy(b, c.line)
	c.line = c.line[n:]
	return n, nil
}

// readLine reads a line; the last one may lack its end. What is behind maxLine bytes is left out.
func readLine(in *bufio.Reader) (line []byte, err error) {
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part[:min(len(part), maxLine+1-len(line))]...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err == io.EOF && len(line) > 0:
			return line, nil
		default:
			return line, err
		}
	}
}

// checkLine tells whether a line is a call, or why it is no message.
func checkLine(line []byte) (isCall bool, why *jsonrpc.Error) {
	if len(line) > maxLine {
		return false, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest,
			Message: fmt.Sprintf("a message has at most %d bytes: store fewer items at a time", maxLine)}
	}
	if err := json.Unmarshal(line, new(json.RawMessage)); err != nil {
		return false, &jsonrpc.Error{Code: jsonrpc.CodeParseError,
			Message: fmt.Sprintf("a line is no JSON: %v: a message of JSON-RPC 2.0 is expected", err)}
	}
	m, err := jsonrpc.DecodeMessage(line)
	if err != nil {
		return false, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest,
			Message: fmt.Sprintf("a line is no message of JSON-RPC 2.0: %v", err)}
	}
	r, is := m.(*jsonrpc.Request)
	return is && r.IsCall(), nil
}

// refuse answers a line that is no message, and so has no number to answer to.
func (c *conversation) refuse(why *jsonrpc.Error) error {
	b, err := json.Marshal(struct {
		Version string         `json:"jsonrpc"`
		ID      *int           `json:"id"`
		Error   *jsonrpc.Error `json:"error"`
	}{"2.0", nil, why})
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		_, err = c.out.Write(append(b, '\n'))
	}
	return err
}

// settle waits until all calls are answered, for some seconds.
func (c *conversation) settle() {
	c.mu.Lock()
	if c.calls <= 0 {
		c.mu.Unlock()
		return
	}
	settled := make(chan struct{})
	c.settled = settled
	c.mu.Unlock()
	select {
	case <-settled:
	case <-c.hungUp:
	case <-time.After(settleTime):
	}
}

// Write implements io.Writer. Each call has a message. Without a reader of the answers there is nothing more
// to wait for.
func (c *conversation) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, err := c.out.Write(b)
	if m, decoded := jsonrpc.DecodeMessage(bytes.TrimSpace(b)); decoded == nil {
		if _, is := m.(*jsonrpc.Response); is {
			c.calls--
		}
	}
	if err != nil {
		c.calls = 0
	}
	if c.calls <= 0 && c.settled != nil {
		close(c.settled)
		c.settled = nil
	}
	return n, err
}

// Close implements io.Closer. The caller of Run closes what it has given.
func (c *conversation) Close() error { return nil }
