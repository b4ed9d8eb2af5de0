package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/internal/rest"
)

// A route is an operation: a method and a path, and what answers it.
type route struct {
	method, path string // a wildcard may be followed by :verb
	summary      string
	scope        Scope
	parameters   []parameter  // in the query of the URL
	headers      []parameter  // that mean something here
	in, out      reflect.Type // JSON of the body and of the answer, or of the result of a job; nil: none
	accepts      []string     // types of a body that is not JSON
	produces     []string     // types of an answer that is not JSON
	line         reflect.Type // JSON of each line of such a body or answer
	answers      reflect.Type // JSON of each line of the answer, where it is another one
	status       int          // of a success
	untimed      bool         // the request may take any time, and takes no place: its parts do
	inParts      bool         // it reads the body itself, part by part
	job          bool
	large        bool // its body may have Options.MaxBody, though it only looks
	forEach      bool // the answer has no more than what the access sees

	run func(ctx context.Context, r *request) error // writes the answer, unless it fails
}

// A parameter is a parameter in the query of a URL.
type parameter struct {
	name, doc string
	kind      string // of JSON Schema: string, integer or boolean
	most      uint64 // of an integer
}

// A request is a request of HTTP, with what its route needs.
type request struct {
	*http.Request
	s      *Server
	w      *answer
	access *Access
	route  *route
	values url.Values
	raw    []byte // the body, of routes that read it as a whole
	held   int64  // bytes of it that count
	placed bool   // it holds a place
	verb   bool   // its path has a verb
}

// none stands for the body of a route that reads no body, and for the answer of one that writes none.
type none struct{}

// handle adds a route whose body and answer are JSON.
func handle[I, O any](t *router, method, path string, scope Scope, summary string,
	run func(ctx context.Context, r *request, in *I) (*O, error), parameters ...parameter) *route {
	o := &route{method: method, path: path, summary: summary, scope: scope, parameters: parameters,
		in: bodyOf[I](), out: bodyOf[O](), status: http.StatusOK}
	if o.out == nil {
		o.status = http.StatusNoContent
	}
	o.run = func(ctx context.Context, r *request) error {
		in := new(I)
		if o.in != nil {
			if err := r.decode(in); err != nil {
				return err
			}
		}
		out, err := run(ctx, r, in)
		r.leave() // the client may be slow to read
		switch {
		case err != nil:
			return err
		case o.out == nil:
			r.w.WriteHeader(o.status)
			return nil
		}
		return r.w.json(o.status, out)
	}
	t.add(o)
	return o
}

// of adds a route about a database, and on adds a route about a collection.
func of[I, O any](t *router, method, path string, scope Scope, summary string,
	run func(ctx context.Context, d api.Database, r *request, in *I) (*O, error),
	parameters ...parameter) *route {
	return handle(t, method, path, scope, summary, func(ctx context.Context, r *request, in *I) (*O, error) {
		d, err := r.database()
		if err != nil {
			return nil, err
		}
		return run(ctx, d, r, in)
	}, parameters...)
}

func on[I, O any](t *router, method, path string, scope Scope, summary string,
	run func(ctx context.Context, c api.Collection, r *request, in *I) (*O, error),
	parameters ...parameter) *route {
	return handle(t, method, path, scope, summary, func(ctx context.Context, r *request, in *I) (*O, error) {
		c, err := r.collection(ctx)
		if err != nil {
			return nil, err
		}
		return run(ctx, c, r, in)
	}, parameters...)
}

func bodyOf[T any]() reflect.Type {
	if t := reflect.TypeFor[T](); t != reflect.TypeFor[none]() {
		return t
	}
	return nil
}

// decode reads the body as one JSON value. A name that the value does not have is an error: it is misspelt.
// An empty body is an empty object.
func (r *request) decode(v any) error {
	body := r.raw
	if len(bytes.TrimSpace(body)) == 0 {
		body = []byte("{}")
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fault.Invalid("body: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := d.Token(); err != io.EOF {
		return fault.Invalid("body: one JSON value is expected, and more follows")
	}
	return nil
}

// maxQuery bounds the body of a request that only looks, if its sender has a token: what it takes in memory
// may be ten times as much.
const maxQuery = 4 << 20

// read reads the whole body, up to the limit. It takes no place, because a slow client would keep it. Instead
// the server bounds the bytes that all requests hold. The caller calls release.
func (r *request) read() error {
	limit := r.s.opt.MaxBody
	if r.route.scope == Read && r.access != everybody && !r.route.large {
		limit = min(limit, maxQuery)
	}
	large := fmt.Errorf("%w: the body has more than %d bytes", rest.ErrTooLarge, limit)
	if r.ContentLength > limit {
		return large
	}
	in, err := decompressed(r.Request)
	if err != nil {
		return err
	}
	defer in.Close()
	var b bytes.Buffer
	n, err := b.ReadFrom(io.LimitReader(&holding{in, r}, limit+1))
	switch {
	case n > limit:
		return large
	case err != nil:
		return unread(err)
	}
	r.raw = b.Bytes()
	return nil
}

// A patient is a body whose sender has to go on within a time.
type patient struct {
	io.ReadCloser
	control *http.ResponseController
	timeout time.Duration
}

// patience returns a body of which each part has the time of a request to come. A deadline bounds also what
// package net/http reads of a body after the answer.
func (r *request) patience(body io.ReadCloser) io.ReadCloser {
	if body == nil || body == http.NoBody {
		return http.NoBody
	}
	p := &patient{body, http.NewResponseController(r.w), r.s.opt.Timeout}
	_ = p.control.SetReadDeadline(time.Now().Add(p.timeout))
	return p
}

func (p *patient) Read(b []byte) (int, error) {
	_ = p.control.SetReadDeadline(time.Now().Add(p.timeout))
	n, err := p.ReadCloser.Read(b)
	if err == io.EOF { // from here on a deadline that passes would end the context of the request
		_ = p.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// A holding is a body that counts what a request holds in memory.
type holding struct {
	io.Reader
	r *request
}

func (h *holding) Read(b []byte) (int, error) {
	n, err := h.Reader.Read(b)
	h.r.held += int64(n)
	if h.r.s.held.Add(int64(n)) > bodies*h.r.s.opt.MaxBody {
		return n, fmt.Errorf("%w: other bodies take all of its memory for them", rest.ErrOverloaded)
	}
	return n, err
}

// release gives back what read holds.
func (r *request) release() { r.s.held.Add(-r.held) }

// unread returns the error of a body that could not be read.
func unread(err error) error {
	switch {
	case errors.Is(err, rest.ErrOverloaded):
		return err
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &statusError{http.StatusRequestTimeout, "request_timeout", "the body came too slowly"}
	}
	return fault.Invalid("body: %w", err)
}

// check refuses a parameter that the route does not have, or that is not of its kind.
func (r *request) check() error {
	for name, list := range r.values {
		i := slices.IndexFunc(r.route.parameters, func(p parameter) bool { return p.name == name })
		switch {
		case i < 0:
			return fault.Invalid("there is no parameter %.40q here: /openapi.json lists those of each path",
				name)
		case len(list) > 1:
			return fault.Invalid("%s is given %d times", name, len(list))
		}
		switch p, value := r.route.parameters[i], list[0]; p.kind {
		case "integer":
			if n, err := strconv.ParseUint(value, 10, 64); err != nil || n > p.most {
				return fault.Invalid("%s=%.40q: a whole number from 0 to %d is expected", name, value, p.most)
			}
		case "boolean":
			if !slices.Contains([]string{"true", "false"}, value) {
				return fault.Invalid("%s=%.40q: true or false is expected", name, value)
			}
		default:
			if !utf8.ValidString(value) {
				return fault.Invalid("%s is not UTF-8", name)
			}
		}
	}
	return nil
}

// conditions refuses a change under a condition that the route does not know: to ignore it would lose what it
// protects.
func (r *request) conditions() error {
	for _, name := range []string{"If-Match", "If-None-Match", "If-Unmodified-Since"} {
		if r.route.method != http.MethodGet && r.Header.Get(name) != "" &&
			!slices.ContainsFunc(r.route.headers, func(p parameter) bool { return p.name == name }) {
			return fault.Invalid("%s is not possible here: PUT to an item knows If-Match and If-None-Match",
				name)
		}
	}
	return nil
}

// text returns a parameter of the URL, number one that is a whole number, flag one that is true or false.
// They have been checked.
func (r *request) text(name string) string { return r.values.Get(name) }

func (r *request) number(name string) uint64 {
	n, _ := strconv.ParseUint(r.text(name), 10, 64)
	return n
}

func (r *request) flag(name string) bool { return r.text(name) == "true" }

// filter returns the parameters where and args. args is a JSON array.
func (r *request) filter() (where string, args []any, err error) {
	if s := r.text("args"); s != "" {
		var list rest.Args
		if err := json.Unmarshal([]byte(s), &list); err != nil {
			return "", nil, fault.Invalid("args: a JSON array is expected: %s", err)
		}
		args = list
	}
	return r.text("where"), args, nil
}

// database returns the database that the path names.
func (r *request) database() (api.Database, error) {
	if d := r.s.databases[r.PathValue("database")]; d != nil {
		return d, nil
	}
	return nil, fault.NotFound("database %q", r.PathValue("database"))
}

// collection returns the collection that the path names, in the space of the parameters.
func (r *request) collection(ctx context.Context) (api.Collection, error) {
	space, revision := r.number("space"), r.number("revision")
	d, err := r.database()
	if err != nil {
		return nil, err
	}
	c, err := d.Collection(ctx, r.PathValue("collection"))
	if err == nil && space+revision > 0 {
		c, err = c.InSpace(ctx, db.Space(space), uint32(revision))
	}
	return c, err
}

// A router finds the route of a request.
type router struct {
	mux    *http.ServeMux
	routes []*route
	verbs  map[string]bool // that may stand behind a colon
}

// methods are those that routes have.
var methods = []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}

func (t *router) add(o *route) {
	t.routes = append(t.routes, o)
	path, verb, has := strings.Cut(o.path, "}:")
	if has {
		t.verbs[verb] = true
		path += "}/:" + verb
	}
	t.mux.Handle(o.method+" "+path, o)
}

// ServeHTTP is not called: a route is found by the mux, and run by the server.
func (o *route) ServeHTTP(http.ResponseWriter, *http.Request) {}

// split returns the request with a slash before the verb of its path, as patterns of the mux have it, and
// whether it has one. A colon of a name is escaped, and in a key it stands behind items/.
func (t *router) split(r *http.Request) (*http.Request, bool) {
	path := r.URL.EscapedPath()
	slash, colon := strings.LastIndexByte(path, '/'), strings.LastIndexByte(path, ':')
	n := strings.Count(path, "/") // of /v1/DATABASE and /v1/DATABASE/collections/COLLECTION
	if colon < slash || !t.verbs[path[colon+1:]] ||
		n != 2 && (n != 4 || !strings.HasSuffix(path[:slash], "/collections")) {
		return r, false
	}
	u := *r.URL
	u.RawPath = path[:colon] + "/" + path[colon:]
	var err error
	if u.Path, err = url.PathUnescape(u.RawPath); err != nil {
		return r, false
	}
	split := *r
	split.URL = &u
	return &split, true
}

// ServeHTTP answers a request. Answers of some length are compressed if the client takes that.
func (s *Server) ServeHTTP(out http.ResponseWriter, in *http.Request) {
	if !s.crossOrigin(out, in) {
		s.compressed.ServeHTTP(out, in)
	}
}

func (s *Server) serve(out http.ResponseWriter, in *http.Request) {
	w := &answer{ResponseWriter: out, s: s, timeout: s.opt.Timeout}
	// The connection may go on with other handlers.
	defer func() { _ = http.NewResponseController(out).SetWriteDeadline(time.Time{}) }()
	began := time.Now()
	r := &request{s: s, w: w}
	r.Request, r.verb = s.routes.split(in)
	r.Body = r.patience(r.Body)
	err := s.answer(r)
	if err != nil {
		w.fail(err)
	}
	s.note(r, err, time.Since(began))
}

// answer finds the route of a request, and runs it. A panic becomes an error.
func (s *Server) answer(r *request) (err error) {
	defer func() {
		if p := recover(); p != nil {
			if p == http.ErrAbortHandler {
				panic(p)
			}
			s.opt.Logger.Error("panic while a request was answered", "panic", p, "stack",
				string(debug.Stack()))
			err = errors.New("the server has a fault, which its log describes")
		}
	}()
	if err := s.begin(); err != nil {
		return err
	}
	defer s.working.Done()
	h, pattern := s.routes.mux.Handler(r.Request)
	o, is := h.(*route)
	if !is {
		return s.noRoute(r)
	}
	if r.verb != strings.Contains(o.path, "}:") { // a slash before the colon
		return noPath(r)
	}
	r.route = o
	if r.access, err = s.allowed(r.Request, o); err != nil {
		return err
	}
	if r.values, err = url.ParseQuery(r.URL.RawQuery); err != nil {
		return fault.Invalid("the query of the URL: %s", err)
	}
	if err := r.check(); err != nil {
		return err
	}
	setPathValues(r.Request, pattern)
	if d := r.PathValue("database"); d != "" {
		if !r.access.knows(d) {
			return fault.NotFound("database %q", d)
		}
		r.access = r.access.in(d)
	}
	if err := r.access.permits(o, r.PathValue("collection")); err != nil {
		return err
	}
	if o.scope > 0 { // whoever watches the server is not paced
		if err := s.pace(r.access); err != nil {
			return err
		}
	}
	if err := r.conditions(); err != nil {
		return err
	}
	if o.method != http.MethodGet && !o.inParts {
		defer r.release()
		if err := r.read(); err != nil {
			return err
		}
		if o.in == nil && o.accepts == nil {
			if err := r.decode(&none{}); err != nil {
				return err
			}
		}
	}
	ctx := r.Context()
	if o.untimed && o.scope > 0 {
		defer s.streams.Add(-1)
		if int(s.streams.Add(1)) > streamsPerPlace*cap(s.places) {
			return rest.ErrOverloaded
		}
		if !o.inParts { // it only reads: its client begins anew elsewhere
			var cancel context.CancelCauseFunc
			ctx, cancel = context.WithCancelCause(ctx)
			defer cancel(nil)
			defer context.AfterFunc(s.ends, func() { cancel(rest.ErrClosing) })()
		}
	}
	if !o.untimed && !o.job {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.opt.Timeout)
		defer cancel()
		if err := s.enter(ctx); err != nil {
			return err
		}
		r.placed = true
		defer r.leave()
	}
	return o.run(ctx, r)
}

// leave gives back the place of a request, if it has one.
func (r *request) leave() {
	if r.placed {
		r.placed = false
		r.s.leave()
	}
}

// setPathValues sets the wildcards of the pattern that a request has matched.
func setPathValues(r *http.Request, pattern string) {
	_, pattern, _ = strings.Cut(pattern, " ")
	parts := strings.Split(r.URL.EscapedPath(), "/")
	for i, p := range strings.Split(pattern, "/") {
		if name, is := strings.CutPrefix(p, "{"); is && i < len(parts) {
			value, err := url.PathUnescape(parts[i])
			if err != nil {
				value = parts[i]
			}
			r.SetPathValue(strings.TrimSuffix(name, "}"), value)
		}
	}
}

// noRoute returns the error of a request whose path, or whose method for the path, no route has.
func (s *Server) noRoute(r *request) error {
	var allow []string
	for _, method := range methods {
		other := *r.Request
		other.Method = method
		if h, _ := s.routes.mux.Handler(&other); h != nil {
			if _, is := h.(*route); is {
				allow = append(allow, method)
			}
		}
	}
	if len(allow) > 0 {
		r.w.Header().Set("Allow", strings.Join(allow, ", "))
		return &statusError{http.StatusMethodNotAllowed, "method_not_allowed",
			fmt.Sprintf("%s is not possible here: %s", r.Method, strings.Join(allow, ", "))}
	}
	return noPath(r)
}

func noPath(r *request) error {
	return fault.NotFound("no path %.100q: /openapi.json lists the paths", r.URL.Path)
}

// A statusError is an error of HTTP that no error of package db or rest stands for.
type statusError struct {
	status       int
	code, detail string
}

func (e *statusError) Error() string { return "fddhdb: " + e.detail }

// An answer writes the answer to a request.
type answer struct {
	http.ResponseWriter
	s       *Server
	status  int           // 0: nothing has been written
	timeout time.Duration // of a client that reads nothing; 0: it may take any time
}

// Unwrap is for http.ResponseController.
func (w *answer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *answer) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
		w.ResponseWriter.WriteHeader(status)
	}
}

func (w *answer) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.timeout > 0 {
		_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(w.timeout))
	}
	return w.ResponseWriter.Write(b)
}

// json writes an answer as JSON. An error of the client's connection is none of ours.
func (w *answer) json(status int, v any) error {
	b, err := marshal(v)
	if err != nil {
		return fmt.Errorf("fddhdb: the answer has no form in JSON: %w", err)
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(b)))
	w.WriteHeader(status)
	_, _ = w.Write(b)
	return nil
}

// marshal is json.Marshal without the escapes of HTML.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}

// problem returns the problem of an error. An error of no known kind may name paths of this machine, and that
// of an encoder has what its program has written: a sender with a token does not get its text, and the log
// has it.
func (s *Server) problem(err error) *rest.Problem {
	p := rest.NewProblem(err)
	var own *statusError
	if errors.As(err, &own) {
		p.Status, p.Code, p.Title = own.status, own.code, http.StatusText(own.status)
	}
	switch { // a program may have written anything
	case s.opt.Access == nil || s.opt.Details:
	case p.Code == "internal":
		s.opt.Logger.Error("internal error", "error", err)
		p.Detail = "fddhdb: the server has failed at this: its log says how"
	case p.Code == "encoder":
		s.opt.Logger.Error("encoder failed", "error", err)
		p.Detail = "fddhdb: encoder has failed: the log of the server says how"
	}
	return p
}

// fail writes an error as a problem. If a part of the answer has gone out already, it cuts the connection, so
// that nobody takes the part for the whole.
func (w *answer) fail(err error) {
	if w.status != 0 {
		w.s.opt.Logger.Warn("an answer was cut", "error", err)
		panic(http.ErrAbortHandler)
	}
	p := w.s.problem(err)
	h := w.Header()
	switch {
	case p.Stored > 0: // not all of it again
	case p.Status == http.StatusTooManyRequests, p.Status == http.StatusServiceUnavailable:
		h.Set("Retry-After", "1")
	case p.Status == http.StatusUnauthorized:
		h.Set("WWW-Authenticate", `Bearer realm="fddhdb"`)
	}
	if p.Code == "closing" {
		h.Set("Connection", "close")
	}
	b, _ := marshal(p) // it has text and numbers alone
	h.Set("Content-Type", "application/problem+json")
	h.Set("Content-Length", strconv.Itoa(len(b)))
	w.WriteHeader(p.Status)
	_, _ = w.Write(b)
}
