package explore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/serve"
	"github.com/fddhdb/fddhdb/internal/rest"
)

// An endpoint answers requests at one path. Exactly one of its functions is set.
// compute holds a place of Server.computing while it runs. get and post call
// Server.compute for the parts that compute. No request may hold a place while it waits
// for a sender, an encoder or a reader.
type endpoint struct {
	compute func(ctx context.Context, v url.Values) (any, error) // newReply makes a reply of its result
	get     func(ctx context.Context, v url.Values) (*reply, error)
	post    func(ctx context.Context, v url.Values, body io.Reader) (*reply, error)
}

// A reply is a complete answer, so that a slow reader delays nobody.
type reply struct {
	header map[string]string
	body   []byte
}

// newReply returns out if it is a reply, else its JSON.
func newReply(out any) (*reply, error) {
	if r, ok := out.(*reply); ok {
		return r, nil
	}
	body, err := json.Marshal(out)
	if err != nil {
		return nil, err
	}
	return &reply{header: jsonHeader, body: append(body, '\n')}, nil
}

var jsonHeader = map[string]string{"Content-Type": "application/json", "Cache-Control": "no-store"}

func (e *endpoint) methods() []string {
	if e.post != nil {
		return []string{http.MethodPost}
	}
	return reading
}

var reading = []string{http.MethodGet, http.MethodHead}

// A statusError is an error with its HTTP status.
type statusError struct {
	status int
	err    error
}

func (e *statusError) Error() string { return e.err.Error() }
func (e *statusError) Unwrap() error { return e.err }

func statusErrorf(status int, format string, args ...any) error {
	return &statusError{status, fmt.Errorf(format, args...)}
}

// badRequest returns an error that the client can correct.
func badRequest(format string, args ...any) error {
	return statusErrorf(http.StatusBadRequest, format, args...)
}

// status returns the HTTP status of an error.
func status(err error) int {
	var with *statusError
	if errors.As(err, &with) {
		return with.status
	}
	return rest.NewProblem(err).Status
}

// errorForm is the JSON answer to a failed request.
type errorForm struct {
	Error  string `json:"error"`
	Status int    `json:"status"`
	Column int    `json:"column,omitempty"` // of the expression where, from 1
}

var discard = log.New(io.Discard, "", 0)

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer func() {
		switch p := recover(); {
		case p == http.ErrAbortHandler:
			panic(p)
		case p != nil: // a bug of this package: the server goes on
			s.opt.Report(fmt.Sprintf("internal error: %s: %v\n%s", r.URL, p, debug.Stack()))
			s.fail(w, r, fmt.Errorf("internal error: %v", p))
		}
	}()
	protect(w.Header())
	if err := serve.CheckLocal(r); err != nil {
		s.fail(w, r, err)
		return
	}
	s.page.ServeHTTP(w, r)
}

// serveAPI answers a request for something under /api.
func (s *Server) serveAPI(w http.ResponseWriter, r *http.Request) {
	e, ok := s.api[r.URL.Path]
	if !ok {
		s.fail(w, r, statusErrorf(http.StatusNotFound,
			"there is nothing at %.200q; docs/EXPLORE.md lists what is under /api", r.URL.Path))
		return
	}
	if !s.takes(w, r, e.methods()) {
		return
	}
	limit := s.limit(r)
	if limit > requestTime {
		// A test's response without a connection has no deadlines to change.
		control := http.NewResponseController(w)
		if r.ContentLength == 0 { // an unread body keeps its deadline: the end of the request waits for it
			// the deadline would end the request, although it has been read
			_ = control.SetReadDeadline(time.Time{})
		}
		_ = control.SetWriteDeadline(time.Now().Add(limit + writeTime))
	}
	ctx, cancel := context.WithTimeout(r.Context(), limit)
	defer cancel()
	if err := s.answer(w, r.WithContext(ctx), &e); err != nil {
		s.fail(w, r, err)
	}
}

// limit returns the time that a request may take. A model that makes vectors of text or
// pictures may need minutes to start.
func (s *Server) limit(r *http.Request) time.Duration {
	return s.requestTime + s.encodingTime(r.URL.Query())
}

// takes refuses a method that the path does not have.
func (s *Server) takes(w http.ResponseWriter, r *http.Request, methods []string) bool {
	if slices.Contains(methods, r.Method) {
		return true
	}
	all := strings.Join(methods, ", ")
	w.Header().Set("Allow", all)
	s.fail(w, r, statusErrorf(http.StatusMethodNotAllowed, "%.20q is not possible here, but %s", r.Method,
		all))
	return false
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request, e *endpoint) error {
	v, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return badRequest("the parameters cannot be read: %v", err)
	}
	var out *reply
	switch {
	case e.post != nil:
		out, err = e.post(r.Context(), v, http.MaxBytesReader(w, r.Body, maxUpload))
	case e.get != nil:
		out, err = e.get(r.Context(), v)
	default:
		out, err = s.compute(r.Context(), func() (any, error) { return e.compute(r.Context(), v) })
	}
	if err != nil {
		return err
	}
	out.send(w, http.StatusOK)
	return nil
}

// compute calls f once it has a place to compute, and makes a reply of its result
// there, too.
func (s *Server) compute(ctx context.Context, f func() (any, error)) (*reply, error) {
	if err := s.computing.enter(ctx); err != nil {
		return nil, err
	}
	defer s.computing.leave()
	out, err := f()
	if err != nil {
		return nil, err
	}
	return newReply(out)
}

// fail answers with an error.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil {
		return // the client has gone
	}
	form := errorForm{Error: exit.Message(err), Status: status(err)}
	if errors.Is(err, context.DeadlineExceeded) {
		form.Error = fmt.Sprintf("not done after %v", s.limit(r))
	}
	var where *db.WhereError
	if errors.As(err, &where) {
		form.Error, form.Column = fmt.Sprintf("where: column %d: %s", where.Column, where.Reason),
			where.Column
	}
	if form.Status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	out, err := newReply(form)
	if err != nil {
		http.Error(w, form.Error, form.Status) // which cannot be: text and numbers can be marshalled
		return
	}
	out.send(w, form.Status)
}

// send writes the reply. A slow client may keep it waiting.
func (r *reply) send(w http.ResponseWriter, status int) {
	h := w.Header()
	for name, value := range r.header {
		h.Set(name, value)
	}
	h.Set("Content-Length", strconv.Itoa(len(r.body)))
	w.WriteHeader(status)
	_, _ = w.Write(r.body) // the client may have gone
}
