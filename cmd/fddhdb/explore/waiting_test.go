package explore

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"
)

// These tests keep more requests waiting than there are places to compute. Meanwhile
// the server has to answer others.

func many(s *Server) int { return cap(s.computing.places) + 1 }

// answers fails the test if the server does not answer other requests.
func answers(t *testing.T, s *Server) {
	t.Helper()
	for _, path := range []string{"/api/database", "/api/search?key=item+3&from=image&to=text"} {
		if w := do(s, request("GET", path, nil)); w.Code != http.StatusOK {
			t.Errorf("%s: %d: %s", path, w.Code, w.Body)
		}
	}
}

// Files that arrive slowly delay no other request.
func TestSlowBodies(t *testing.T) {
	s := newServer(t, sharedDatabase(t))
	s.computing = newRoom(2)
	codes := make(chan int, many(s))
	var senders []*io.PipeWriter
	for i := range many(s) {
		body, sender := io.Pipe()
		senders = append(senders, sender)
		go func() {
			code := do(s, httptest.NewRequest("POST", fmt.Sprintf("http://%s/api/uploads?name=%d.csv", host,
				i), body)).Code
			_ = body.Close() // ends requests to a server that does not read
			codes <- code
		}()
		_, err := sender.Write([]byte("1,2,")) // returns once the server has read it
		check(t, err)
	}
	answers(t, s)
	for _, sender := range senders {
		_, err := sender.Write([]byte("3,4,5\n"))
		check(t, err)
		check(t, sender.Close())
	}
	for range senders {
		if code := <-codes; code != http.StatusOK {
			t.Errorf("a slow file: %d", code)
		}
	}
	if n := len(s.uploads.receiving.places); n != 0 {
		t.Errorf("%d files arrive when all have arrived", n)
	}
}

// A file that has not arrived in time gets an error that says so.
func TestLateBody(t *testing.T) {
	s := newServer(t, sharedDatabase(t))
	connection, sender := net.Pipe()
	defer sender.Close()
	defer connection.Close()
	check(t, connection.SetReadDeadline(time.Unix(1, 0)))
	refused(t, do(s, httptest.NewRequest("POST", "http://"+host+"/api/uploads?name=a.csv", connection)), 408,
		"did not arrive within 1m0s")
}

// A program that does not answer delays only the clients that use it.
func TestStuckEncoder(t *testing.T) {
	s := newServer(t, sharedDatabase(t), testEncoder(t, 0))
	s.computing = newRoom(2)
	ctx, leave := context.WithCancel(t.Context())
	const clients = 100
	codes := make(chan int)
	for range clients {
		go func() {
			codes <- do(s, request("GET", "/api/search?from=text&text=be+silent", nil).WithContext(ctx)).Code
		}()
	}
	// One is encoded and 64 wait, for which the others are refused.
	for range clients - 65 {
		if code := <-codes; code != http.StatusServiceUnavailable {
			t.Errorf("beside many others: %d", code)
		}
	}
	answers(t, s)
	leave()
	for range 65 {
		<-codes
	}
}

// A slow reader delays nobody: its answer is complete, of JSON and of bytes alike.
func TestSlowReaders(t *testing.T) {
	s := newServer(t, sharedDatabase(t))
	s.computing = newRoom(2)
	for _, path := range []string{"/api/search?key=item+3&items=true", "/api/media?key=item+0"} {
		writing, goOn, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
		for range many(s) {
			go func() {
				s.ServeHTTP(&slowReader{httptest.NewRecorder(), writing, goOn}, request("GET", path, nil))
				ended <- struct{}{}
			}()
		}
		for range many(s) {
			<-writing
		}
		answers(t, s)
		close(goOn)
		for range many(s) {
			<-ended
		}
	}
}

// slowReader reads an answer when the test lets it.
type slowReader struct {
	*httptest.ResponseRecorder
	writing, goOn chan struct{}
}

func (r *slowReader) Write(b []byte) (int, error) {
	r.writing <- struct{}{}
	<-r.goOn
	return r.ResponseRecorder.Write(b)
}

// Requests for rows of one file take turns and delay no others.
func TestOneFileInUse(t *testing.T) {
	s := newServer(t, sharedDatabase(t))
	s.computing = newRoom(2)
	form := send(t, s, "a.csv", []byte("1,2,3,4,5\n"))
	u, err := s.uploads.use(form.Upload)
	check(t, err)
	check(t, u.turn.enter(t.Context()))
	codes := make(chan int)
	for range many(s) {
		go func() {
			codes <- do(s, request("GET", "/api/search?from=text&row=0&upload="+form.Upload,
				nil)).Code
		}()
	}
	for int(u.turn.waiting.Load()) < many(s) {
		runtime.Gosched()
	}
	answers(t, s)
	u.turn.leave()
	for range many(s) {
		if code := <-codes; code != http.StatusOK {
			t.Errorf("a row of a file in use: %d", code)
		}
	}
}
