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

	"github.com/fddhdb/fddhdb/db"
)

// An endpoint answers at one path; one of its functions is set.
type endpoint struct {
	get  func(ctx context.Context, v url.Values) (any, error) // what is sent as JSON
	post func(ctx context.Context, v url.Values, body io.Reader) (any, error)
	raw  func(w http.ResponseWriter, r *http.Request, v url.Values) error
}

func (e *endpoint) methods() []string {
	if e.post != nil {
		return []string{http.MethodPost}
	}
	return reading
}

var reading = []string{http.MethodGet, http.MethodHead}

// A statusError is an error with the HTTP status that belongs to it.
type statusError struct {
	status int
	err    error
}

func (e *statusError) Error() string { return e.err.Error() }
func (e *statusError) Unwrap() error { return e.err }

func statusErrorf(status int, format string, args ...any) error {
	return &statusError{status, fmt.Errorf(format, args...)}
}

// badRequest is an error that whoever asks can mend.
func badRequest(format string, args ...any) error {
	return statusErrorf(http.StatusBadRequest, format, args...)
}

// status returns the HTTP status of an error.
func status(err error) int {
	var with *statusError
	switch {
	case errors.As(err, &with):
		return with.status
	case errors.Is(err, context.DeadlineExceeded):
		return http.StatusGatewayTimeout
	case errors.Is(err, db.ErrInvalid):
		return http.StatusBadRequest
	case errors.Is(err, db.ErrNotFound):
		return http.StatusNotFound
	case errors.Is(err, db.ErrNoModel), errors.Is(err, db.ErrBusy):
		return http.StatusConflict
	case errors.Is(err, db.ErrClosed):
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// errorForm is the answer to a request that failed.
type errorForm struct {
	Error  string `json:"error"`
	Status int    `json:"status"`
	Column int    `json:"column,omitempty"` // of where, from 1
}

var discard = log.New(io.Discard, "", 0)

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer func() {
		switch p := recover(); {
		case p == http.ErrAbortHandler:
			panic(p)
		case p != nil: // a mistake of this package: the others go on
			s.opt.Report(fmt.Sprintf("internal error: %s: %v\n%s", r.URL, p, debug.Stack()))
			s.fail(w, r, fmt.Errorf("internal error: %v", p))
		}
	}()
	protect(w.Header())
	if err := guard(r); err != nil {
		s.fail(w, r, err)
		return
	}
	if a, ok := s.page[r.URL.Path]; ok {
		if s.takes(w, r, reading) {
			a.serve(w)
		}
		return
	}
	e, ok := s.api[r.URL.Path]
	if !ok {
		s.fail(w, r, statusErrorf(http.StatusNotFound, "there is nothing at %.200q; docs/EXPLORE.md lists what is under /api", r.URL.Path))
		return
	}
	if !s.takes(w, r, e.methods()) {
		return
	}
	limit := s.limit(r)
	if limit > requestTime {
		// What cannot have other deadlines has none: it is no connection.
		control := http.NewResponseController(w)
		_ = control.SetReadDeadline(time.Time{}) // which would end the request, though it has been read
		_ = control.SetWriteDeadline(time.Now().Add(limit + writeTime))
	}
	ctx, cancel := context.WithTimeout(r.Context(), limit)
	defer cancel()
	if err := s.answer(w, r.WithContext(ctx), &e); err != nil {
		s.fail(w, r, err)
	}
}

// limit returns how long a request may take: a model that makes vectors of text may need
// minutes until it is there.
func (s *Server) limit(r *http.Request) time.Duration {
	limit := s.requestTime
	if v := r.URL.Query(); v.Has("text") {
		if e := s.encode[v.Get("from")]; e != nil {
			limit += e.longest()
		}
	}
	return limit
}

// takes refuses a method that is not among those of a path.
func (s *Server) takes(w http.ResponseWriter, r *http.Request, methods []string) bool {
	if slices.Contains(methods, r.Method) {
		return true
	}
	all := strings.Join(methods, ", ")
	w.Header().Set("Allow", all)
	s.fail(w, r, statusErrorf(http.StatusMethodNotAllowed, "%.20q is not possible here, but %s", r.Method, all))
	return false
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request, e *endpoint) error {
	v, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return badRequest("the parameters cannot be read: %v", err)
	}
	leave, err := s.enter(r.Context())
	if err != nil {
		return err
	}
	defer leave()
	var out any
	switch {
	case e.raw != nil:
		return e.raw(w, r, v)
	case e.post != nil:
		out, err = e.post(r.Context(), v, http.MaxBytesReader(w, r.Body, maxUpload))
	default:
		out, err = e.get(r.Context(), v)
	}
	if err != nil {
		return err
	}
	body, err := json.Marshal(out)
	if err != nil {
		return err
	}
	s.write(w, http.StatusOK, body)
	return nil
}

// enter waits until there is room for one more request to be worked on.
func (s *Server) enter(ctx context.Context) (leave func(), err error) {
	leave = func() { <-s.slots }
	select {
	case s.slots <- struct{}{}:
		return leave, nil
	default:
	}
	if s.waiting.Add(1) > maxWaiting {
		s.waiting.Add(-1)
		return nil, statusErrorf(http.StatusServiceUnavailable, "too many requests at a time: ask again when some are answered")
	}
	defer s.waiting.Add(-1)
	select {
	case s.slots <- struct{}{}:
		return leave, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// fail answers with an error.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil {
		return // nobody listens any more
	}
	form := errorForm{Error: s.opt.Message(err), Status: status(err)}
	if errors.Is(err, context.DeadlineExceeded) {
		form.Error = fmt.Sprintf("not done after %v", s.limit(r))
	}
	var where *db.WhereError
	if errors.As(err, &where) {
		form.Error, form.Column = fmt.Sprintf("where: column %d: %s", where.Column, where.Reason), where.Column
	}
	if form.Status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	body, err := json.Marshal(form)
	if err != nil {
		panic(err) // text and numbers can be marshalled
	}
	s.write(w, form.Status, body)
}

func (s *Server) write(w http.ResponseWriter, status int, body []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(len(body)+1))
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // who asked may have left
}
