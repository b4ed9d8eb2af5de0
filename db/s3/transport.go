package s3

import (
	"errors"
	"io"
	"net/http"
	"sync"
)

// leavesBody keeps the body of a request from being read after the request has
// returned. If a server answers before it has read everything, or hangs up, net/http
// goes on reading the body in a goroutine of its own. Meanwhile the client goes back to
// the start of the body for the next try, and each of the two would read bytes of the
// other.
type leavesBody struct{ http.RoundTripper }

func (t leavesBody) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return t.RoundTripper.RoundTrip(r)
	}
	try := &try{over: make(chan struct{})}
	own := r.WithContext(r.Context()) // a transport must not change a request
	own.Body = tried{r.Body, try}
	if r.GetBody != nil {
		own.GetBody = func() (io.ReadCloser, error) {
			body, err := r.GetBody()
			return tried{body, try}, err
		}
	}
	resp, err := t.RoundTripper.RoundTrip(own)
	try.leave()
	if err != nil {
		try.end()
		return nil, err
	}
	resp.Body = reply{resp.Body, try}
	return resp, nil
}

// A try is one sending of a request.
type try struct {
	mu   sync.Mutex    // held while the body is read; guards left
	left bool          // nothing may read the body any more
	over chan struct{} // closed when the try is over
	once sync.Once     // closes over
}

// leave waits for a read that is under way; it reads from memory or a file.
func (t *try) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.left = true
}

func (t *try) end() { t.once.Do(func() { close(t.over) }) }

// tried is the body of a request.
type tried struct {
	io.ReadCloser
	try *try
}

var errAnswered = errors.New("the server has answered before it had everything")

// Read waits, once there is an answer, until the answer has been read: an error would
// close the connection, and the answer with it.
func (b tried) Read(p []byte) (int, error) {
	b.try.mu.Lock()
	if !b.try.left {
		defer b.try.mu.Unlock()
		return b.ReadCloser.Read(p)
	}
	b.try.mu.Unlock()
	<-b.try.over
	return 0, errAnswered
}

// reply is the body of an answer.
type reply struct {
	io.ReadCloser
	try *try
}

func (b reply) Close() error {
	b.try.end()
	return b.ReadCloser.Close()
}
