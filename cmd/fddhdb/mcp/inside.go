package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// Inside carries requests to a handler of this process. An answer comes as it is written.
type inside struct{ handler http.Handler }

var errCut = errors.New("the answer was cut")

// RoundTrip implements http.RoundTripper.
func (i *inside) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	in := r.Clone(ctx)
	if in.Body == nil {
		in.Body = http.NoBody
	}
	body, out := io.Pipe()
	w := &insideWriter{head: http.Header{}, out: out, ready: make(chan struct{})}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer in.Body.Close()
		defer func() {
			var err error
			if recover() != nil { // so a handler cuts an answer; it has told its log of any fault
				err = errCut
			}
			w.WriteHeader(http.StatusOK)
			_ = out.CloseWithError(err)
		}()
		i.handler.ServeHTTP(w, in)
	}()
	select {
	case <-w.ready:
	case <-ctx.Done():
	}
	if err := r.Context().Err(); err != nil { // a handler that ends with its caller has no answer
		cancel()
		_ = body.CloseWithError(err)
		<-ended
		return nil, err
	}
	return &http.Response{Status: fmt.Sprint(w.status, " ", http.StatusText(w.status)), StatusCode: w.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: w.sent, ContentLength: -1, Request: r,
		Body: &insideBody{body, cancel, ended}}, nil
}

// An insideWriter is the http.ResponseWriter of a request within this process. It belongs to the goroutine of
// the handler until ready is closed; status and sent do not change after that.
type insideWriter struct {
	head, sent http.Header
	status     int // 0: not written yet
	out        *io.PipeWriter
	ready      chan struct{}
}

// Header implements http.ResponseWriter, as do the methods below.
func (w *insideWriter) Header() http.Header { return w.head }

func (w *insideWriter) WriteHeader(status int) {
	if w.status == 0 && status >= http.StatusOK {
		w.status, w.sent = status, w.head.Clone()
		close(w.ready)
	}
}

func (w *insideWriter) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.out.Write(b)
}

// Flush implements http.Flusher. It sends the headers; the pipe holds nothing back.
func (w *insideWriter) Flush() { w.WriteHeader(http.StatusOK) }

// An insideBody is the body of an answer. Close ends the handler, and waits for it.
type insideBody struct {
	*io.PipeReader
	cancel context.CancelFunc
	ended  chan struct{}
}

func (b *insideBody) Close() error {
	err := b.PipeReader.Close()
	b.cancel()
	<-b.ended
	return err
}
