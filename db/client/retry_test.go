package client_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
	"github.com/fddhdb/fddhdb/db/client"
	"github.com/fddhdb/fddhdb/db/serve"
)

// breaking serves a database. Of each request but those for collections the first answer is broken by cut.
func breaking(t *testing.T,
	cut func(w http.ResponseWriter, answer *httptest.ResponseRecorder)) (api.Collection, *atomic.Int32) {
	t.Helper()
	s, err := serve.New(map[string]api.Database{"photos": api.Folder(folder(t), nil)}, serve.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var requests atomic.Int32
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/main") || requests.Add(1) > 1 {
			s.ServeHTTP(w, r)
			return
		}
		answer := httptest.NewRecorder()
		s.ServeHTTP(answer, r)
		cut(w, answer)
	}))
	t.Cleanup(web.Close)
	d, err := client.Open(web.URL+"/photos", client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	c, err := d.CreateCollection(t.Context(), "main", schema)
	if err != nil {
		t.Fatal(err)
	}
	return c, &requests
}

// After a connection that fails midway, what may be done twice is done again, and nothing else is.
func TestBrokenAnswers(t *testing.T) {
	cuts := map[string]func(http.ResponseWriter, *httptest.ResponseRecorder){
		"no answer": func(http.ResponseWriter, *httptest.ResponseRecorder) { panic(http.ErrAbortHandler) },
		"half an answer": func(w http.ResponseWriter, answer *httptest.ResponseRecorder) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(answer.Code)
			_, _ = w.Write(answer.Body.Bytes()[:answer.Body.Len()/2])
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		},
		"an answer of a proxy": func(w http.ResponseWriter, _ *httptest.ResponseRecorder) {
			w.WriteHeader(http.StatusBadGateway)
			_, _ = io.WriteString(w, "<html>the server has gone")
		},
	}
	for name, cut := range cuts {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			old := &db.Item{Key: "a"}
			for what, x := range map[string]struct {
				again bool
				do    func(c api.Collection) error
			}{
				"count": {true, func(c api.Collection) error {
					_, err := c.Count(ctx, "")
					return err
				}},
				"put": {true, func(c api.Collection) error {
					_, err := c.Put(ctx, old)
					return err
				}},
				"merge": {true, func(c api.Collection) error {
					_, err := c.Merge(ctx, old)
					return err
				}},
				"delete": {true, func(c api.Collection) error {
					_, err := c.Delete(ctx, "a")
					return err
				}},
				"put without a key": {false, func(c api.Collection) error {
					_, err := c.Put(ctx, &db.Item{Labels: []string{"x"}})
					return err
				}},
				"put if": {false, func(c api.Collection) error { return c.PutIf(ctx, old, nil) }},
			} {
				t.Run(what, func(t *testing.T) {
					c, requests := breaking(t, cut)
					err := x.do(c)
					if x.again && (err != nil || requests.Load() != 2) {
						t.Errorf("%v, after %d requests", err, requests.Load())
					}
					if !x.again && (!errors.Is(err, client.ErrUnknown) || requests.Load() != 1) {
						t.Errorf("%v, after %d requests, not ErrUnknown after one", err, requests.Load())
					}
				})
			}
		})
	}
}

// A server that is reached by the wrong scheme, or whose certificate is not trusted, stays so: the error
// comes at once, and says that nothing was written.
func TestHopelessConnections(t *testing.T) {
	handler := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a request has arrived") })
	plain, secure := httptest.NewServer(handler), httptest.NewTLSServer(handler)
	t.Cleanup(plain.Close)
	t.Cleanup(secure.Close)
	var dials atomic.Int32
	for _, place := range []string{strings.Replace(plain.URL, "http:", "https:", 1), secure.URL} {
		dials.Store(0)
		transport := http.DefaultTransport.(*http.Transport).Clone()
		counted := roundTripper(func(r *http.Request) (*http.Response, error) {
			dials.Add(1)
			return transport.RoundTrip(r)
		})
		d, err := client.Open(place+"/photos", client.Options{Transport: counted})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.Collections(t.Context()); err == nil || dials.Load() != 1 {
			t.Errorf("%s: %v after %d requests", place, err, dials.Load())
		}
		err = d.DropCollection(t.Context(), "main")
		if err == nil || errors.Is(err, client.ErrUnknown) {
			t.Errorf("%s: %v", place, err)
		}
		transport.CloseIdleConnections()
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
