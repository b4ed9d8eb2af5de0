package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/fddhdb/fddhdb/db/api"
	"github.com/fddhdb/fddhdb/db/client"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/serve"
	"github.com/fddhdb/fddhdb/internal/rest"
)

// Limits of requests by HTTP.
const (
	maxRequest  = 4 << 20          // bytes of a body
	maxRequests = 64               // at a time, behind which those to the server have limits of their own
	bodyTime    = 30 * time.Second // for a body to arrive
	requestTime = 6 * time.Minute  // the program that makes vectors may have to load its model
)

// A handler serves the databases of a server to assistants.
type handler struct {
	inside *inside
	places chan struct{}
	tools  map[string]*[2]http.Handler // by the name of a database: tools that look, and those that write too
}

// Handler returns the handler of the paths /mcp/DATABASE, by streamable HTTP without sessions. A call works
// through the handler of s with the token of its request, so that it may do what the token may. Tools that
// write are there for tokens that may write.
func Handler(s *serve.Server, opt Options) (http.Handler, error) {
	h := &handler{inside: &inside{s}, places: make(chan struct{}, maxRequests),
		tools: map[string]*[2]http.Handler{}}
	for _, name := range s.Names() {
		h.tools[name] = &[2]http.Handler{}
		for i := range h.tools[name] {
			own := opt
			own.Name, own.Write = name, i == 1
			tools, err := newServer(own, func(head http.Header) (api.Database, Words, error) {
				return h.open(name, head)
			})
			if err != nil {
				return nil, err
			}
			always := func(*http.Request) *mcp.Server { return tools.tool }
			h.tools[name][i] = mcp.NewStreamableHTTPHandler(always, &mcp.StreamableHTTPOptions{
				Stateless: true, JSONResponse: true, MaxRequestBodyBytes: maxRequest,
				PropagateRequestCancellation: true,
				DisableLocalhostProtection:   true, // serve.Local looks, where there are no tokens
			})
		}
	}
	return h, nil
}

// open returns a database as the sender of a request with these headers sees it.
func (h *handler) open(name string, head http.Header) (api.Database, Words, error) {
	d, err := client.Open("http://inside/"+url.PathEscape(name),
		client.Options{Token: bearer(head), Transport: h.inside, Place: "the server"})
	if err != nil {
		return nil, nil, err
	}
	return d, ServerWords(d), nil
}

// bearer returns the token of a request, "" if it has none.
func bearer(head http.Header) string {
	kind, token, _ := strings.Cut(head.Get("Authorization"), " ")
	if !strings.EqualFold(kind, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := strings.Trim(strings.TrimPrefix(r.URL.Path, "/mcp"), "/")
	known, err := h.databases(r)
	switch {
	case err != nil:
		refuse(w, err)
		return
	case h.tools[name] == nil || !slices.Contains(known.Databases, name):
		refuse(w, fault.NotFound("database %.100q: /mcp/DATABASE is expected, with one of %s", name, some(known.Databases)))
		return
	}
	select {
	case h.places <- struct{}{}:
		defer func() { <-h.places }()
	default:
		refuse(w, fmt.Errorf("%w: %d requests of assistants work: send this one again", rest.ErrOverloaded,
			maxRequests))
		return
	}
	// The connection may go on with other requests.
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyTime))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		refuse(w, unread(err))
		return
	}
	_ = control.SetReadDeadline(time.Time{})
	if first := bytes.TrimSpace(body); len(first) > 0 && first[0] == '[' { // it could be thousands of calls
		refuse(w, fault.Invalid("an array of messages is not possible: send a message a request"))
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), requestTime)
	defer cancel()
	r = r.WithContext(ctx)
	r.Body = io.NopCloser(bytes.NewReader(body))
	writes := 0
	if known.Scope != serve.Read.String() {
		writes = 1
	}
	h.tools[name][writes].ServeHTTP(w, r)
}

// databases asks the server which databases the token of a request gives access to, and with which scope.
func (h *handler) databases(r *http.Request) (*rest.Databases, error) {
	ask, err := http.NewRequestWithContext(r.Context(), http.MethodGet, "http://inside/v1", http.NoBody)
	if err != nil {
		return nil, err
	}
	if token := r.Header.Get("Authorization"); token != "" {
		ask.Header.Set("Authorization", token)
	}
	answer, err := h.inside.RoundTrip(ask)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	d := json.NewDecoder(answer.Body)
	if answer.StatusCode != http.StatusOK {
		var p rest.Problem
		if err := d.Decode(&p); err != nil {
			return nil, err
		}
		return nil, p.Err()
	}
	out := new(rest.Databases)
	return out, d.Decode(out)
}

// refuse answers with an error, in the form of the server.
func refuse(w http.ResponseWriter, err error) {
	p := rest.NewProblem(err)
	switch p.Status {
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", `Bearer realm="fddhdb"`)
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "1")
	}
	b, _ := json.Marshal(p) // it has text and numbers alone
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_, _ = w.Write(b)
}

// unread returns the error of a body that could not be read.
func unread(err error) error {
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return fmt.Errorf("%w: the body has more than %d bytes: store fewer items at a time", rest.ErrTooLarge,
			maxRequest)
	}
	return fault.Invalid("the body could not be read: %w", err)
}
