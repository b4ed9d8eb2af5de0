package client

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/fddhdb/fddhdb/db/api"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/internal/rest"
)

// Errors between a client and a server. The errors of a database are in package db.
var (
	ErrUnauthorized = rest.ErrUnauthorized // the token is missing or unknown
	ErrForbidden    = rest.ErrForbidden    // the token does not allow this
	ErrTooLarge     = rest.ErrTooLarge     // a limit of the server
	ErrOverloaded   = rest.ErrOverloaded   // the server has too much to do
	ErrUnknown      = rest.ErrUnknown      // the connection has failed: a change may have been made
)

// Options are the settings of a client. The zero value is for a server that asks for no token.
type Options struct {
	Token string // sent as a bearer token

	// Transport carries the requests; nil means one of its own, with 64 idle connections. Give your own for
	// certificates and proxies.
	Transport http.RoundTripper

	// Place is what errors call the server; "" is its URL.
	Place string

	// Patience bounds how long a request that the server has not carried out is sent again; 0 means 10
	// seconds, negative not at all.
	Patience time.Duration
}

// Database is a database of a server.
type Database struct {
	base     string // up to the name of the database
	http     *http.Client
	own      *http.Transport // that Close empties; nil: the caller's
	token    string
	patience time.Duration
	place    string
}

var _ api.Database = (*Database)(nil)

// Open returns the database that a URL names: http://HOST:PORT/DATABASE, or https. It sends nothing yet.
func Open(place string, opt Options) (*Database, error) {
	u, err := url.Parse(place)
	name := ""
	if err == nil {
		name = strings.Trim(u.EscapedPath(), "/")
	}
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, fault.Invalid("%q: the URL of a database is expected, as http://HOST:PORT/DATABASE",
			place)
	case name == "" || strings.Contains(name, "/"):
		return nil, fault.Invalid("%q: the name of the database is missing: http://HOST:PORT/DATABASE", place)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, fault.Invalid("%q: a URL of a database has no user, query and fragment", u.Redacted())
	}
	d := &Database{base: u.Scheme + "://" + u.Host + "/v1/" + name, token: opt.Token,
		patience: opt.Patience, place: opt.Place}
	if d.patience == 0 {
		d.patience = 10 * time.Second
	}
	transport := opt.Transport
	if transport == nil {
		d.own = http.DefaultTransport.(*http.Transport).Clone()
		d.own.MaxIdleConnsPerHost = 64
		d.own.DisableCompression = true // it costs more than it saves but over slow lines
		transport = d.own
	}
	d.http = &http.Client{Transport: transport,
		// A token goes nowhere else.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return d, nil
}

// Close closes idle connections. The database goes on.
func (d *Database) Close() error {
	if d.own != nil {
		d.own.CloseIdleConnections()
	}
	return nil
}

// A call is a request, which may be sent more than once.
type call struct {
	method, path string // path is behind the database, escaped
	body         []byte
	kind         string // type of the body; "" is JSON
	accept       string
	twice        bool // it may be carried out twice
	stream       bool // the caller reads the answer as it comes
}

// escape escapes a name in a path, and its colons.
func escape(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(url.PathEscape(name), ":", "%3A"), ".", "%2E")
}

// send sends a request until it is carried out, and returns the answer, whose status is a success.
func (d *Database) send(ctx context.Context, c call) (*http.Response, error) {
	var patience <-chan time.Time
	pause := 2 * time.Millisecond
	for {
		r, err := d.once(ctx, c)
		var gone *url.Error
		again := errors.Is(err, rest.ErrClosing) || errors.Is(err, rest.ErrOverloaded) ||
			errors.As(err, &gone) && (unsent(err) || c.twice && !rest.Known(gone.Err))
		if !again || hopeless(err) || d.patience < 0 || ctx.Err() != nil {
			return r, d.reword(ctx, err, c.twice)
		}
		if patience == nil {
			patience = time.After(d.patience)
		}
		select {
		case <-time.After(pause + rand.N(pause)):
			pause = min(2*pause, 500*time.Millisecond)
		case <-patience:
			return nil, d.reword(ctx, err, c.twice)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// unsent reports whether an error says that the server has not seen the request.
func unsent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// hopeless reports whether an error is of a connection that is never made: nothing is sent over it.
func hopeless(err error) bool {
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	return errors.As(err, &certificate) || errors.As(err, &record) || errors.Is(err, http.ErrSchemeMismatch)
}

// reword returns the error of a connection in our words.
func (d *Database) reword(ctx context.Context, err error, twice bool) error {
	var gone *url.Error
	switch {
	case err == nil || !errors.As(err, &gone):
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	case rest.Known(gone.Err):
		return gone.Err
	case unsent(err) || hopeless(err) || twice:
		return fmt.Errorf("fddhdb: %s cannot be reached: %w", cmp.Or(d.place, gone.URL), gone.Err)
	}
	return fmt.Errorf("%w: the connection to %s has failed: %w", rest.ErrUnknown, cmp.Or(d.place, gone.URL),
		gone.Err)
}

// once sends a request once.
func (d *Database) once(ctx context.Context, c call) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, c.method, d.base+c.path, bytes.NewReader(c.body))
	if err != nil {
		return nil, err
	}
	if c.twice { // package net/http then sends it again where an idle connection has been closed
		req.Header["Idempotency-Key"] = nil
	}
	if len(c.body) > 0 {
		kind := c.kind
		if kind == "" {
			kind = "application/json"
		}
		req.Header.Set("Content-Type", kind)
	}
	if c.accept != "" {
		req.Header.Set("Accept", c.accept)
	}
	if d.token != "" {
		req.Header.Set("Authorization", "Bearer "+d.token)
	}
	r, err := d.http.Do(req)
	if err != nil {
		return nil, err
	}
	if r.StatusCode < 300 && c.stream {
		return r, nil
	}
	defer r.Body.Close()
	if r.StatusCode >= 300 {
		return nil, problem(r)
	}
	b, err := io.ReadAll(r.Body)
	if err != nil { // as if no answer had come
		return nil, &url.Error{Op: c.method, URL: req.URL.Redacted(), Err: err}
	}
	r.Body = io.NopCloser(bytes.NewReader(b))
	return r, nil
}

// problem returns the error of an answer.
func problem(r *http.Response) error {
	b, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	var p rest.Problem
	if err == nil && json.Unmarshal(b, &p) == nil && p.Code != "" {
		return p.Err()
	}
	place := r.Request.URL.Redacted()
	odd := fmt.Errorf("fddhdb: %s answers %s, and not as a server of fddhdb does", place, r.Status)
	switch r.StatusCode {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		// Of a proxy that has lost the server: it is as if the connection had failed.
		return &url.Error{Op: r.Request.Method, URL: place, Err: odd}
	}
	return odd
}

// do sends a request and decodes the answer into out, unless that is nil.
func (d *Database) do(ctx context.Context, c call, in, out any) error {
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return fault.Invalid("%w", err)
		}
		c.body = b
	}
	r, err := d.send(ctx, c)
	if err != nil {
		return err
	}
	if out == nil {
		return nil
	}
	if err := json.NewDecoder(r.Body).Decode(out); err != nil {
		return fmt.Errorf("fddhdb: the answer of %s cannot be read: %w", cmp.Or(d.place, d.base), err)
	}
	return nil
}

// read sends a request that changes nothing.
func (d *Database) read(ctx context.Context, method, path string, in, out any) error {
	return d.do(ctx, call{method: method, path: path, twice: true}, in, out)
}

// ask sends a request that changes nothing, and decodes the answer into an O.
func ask[O any](ctx context.Context, d *Database, path string, in any) (*O, error) {
	out, method := new(O), http.MethodPost
	if in == nil {
		method = http.MethodGet
	}
	if err := d.read(ctx, method, path, in, out); err != nil {
		return nil, err
	}
	return out, nil
}
