package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
	"github.com/fddhdb/fddhdb/db/serve"
)

// withToken sends a token with each request.
type withToken struct{ token string }

func (t withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.token != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+t.token)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// dial connects an assistant to a URL.
func dial(ctx context.Context, url, token string) (*mcp.ClientSession, error) {
	c := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil)
	return c.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: url, DisableStandaloneSSE: true,
		HTTPClient: &http.Client{Transport: withToken{token}}}, nil)
}

func toolNames(t *testing.T, c *mcp.ClientSession) (names []string) {
	t.Helper()
	list, err := c.ListTools(t.Context(), nil)
	check(t, err)
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	return names
}

var looking = []string{"count_items", "facets", "get_item", "list_collections", "list_items", "search"}

// By HTTP an assistant sees and does what its token may.
func TestTokens(t *testing.T) {
	var list []serve.Token
	texts := map[string]string{}
	for name, what := range map[string][2]string{"reader": {"read", "*"}, "writer": {"write", "*"},
		"admin": {"admin", "*"}, "one": {"write", "notes"}, "elsewhere": {"admin", "second/other"}} {
		a, err := serve.ParseAccess(name, what[0], what[1])
		check(t, err)
		text, token := serve.NewToken(a)
		texts[name], list = text, append(list, token)
	}
	file := filepath.Join(t.TempDir(), "tokens")
	check(t, serve.WriteTokens(file, list))
	var tokens serve.Tokens
	check(t, tokens.Load(file))
	s, err := serve.New(map[string]api.Database{"first": newDatabase(t), "second": newDatabase(t)},
		serve.Options{Access: tokens.Access})
	check(t, err)
	h, err := Handler(s, Options{Report: func(fault string) { t.Error(fault) }})
	check(t, err)
	web := httptest.NewServer(h)
	defer web.Close()
	url := web.URL + "/mcp/first"
	for name, writes := range map[string]bool{"reader": false, "writer": true, "admin": true, "one": true} {
		c, err := dial(t.Context(), url, texts[name])
		check(t, err)
		want := looking
		if writes {
			want = slices.Sorted(slices.Values(append(slices.Clone(looking), "delete_items", "put_items")))
		}
		if got := toolNames(t, c); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
		if writes {
			ask[any](t, c, "put_items", fmt.Sprintf(
				`{"collection":"notes","items":[{"key":"of %s","text":"x","vectors":{"image":[1,2,3]}}]}`, name))
			ask[any](t, c, "delete_items", fmt.Sprintf(`{"collection":"notes","keys":["of %s"]}`, name))
		} else if _, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "delete_items",
			Arguments: json.RawMessage(`{"collection":"notes","keys":["note 01"]}`)}); err == nil {
			t.Errorf("%s deletes", name)
		}
		if h := ask[hits](t, c, "search", `{"collection":"notes","key":"note 03"}`); len(h.Hits) != 10 {
			t.Errorf("%s: %+v", name, h)
		}
		if l := ask[items](t, c, "list_items", `{"collection":"notes","limit":2}`); len(l.Items) != 2 || l.Next == "" {
			t.Errorf("%s: %+v", name, l)
		}
		refused(t, c, "count_items", `{"collection":"notes","where":"colour = 'red'"}`, "where: column 1", "colour")
		if name != "one" {
			continue
		}
		refused(t, c, "count_items", `{"collection":"other"}`, `no collection "other": there is "notes"`)
		one := ask[struct{ Collections []collectionForm }](t, c, "list_collections", `{}`)
		if len(one.Collections) != 1 || one.Collections[0].Name != "notes" {
			t.Errorf("%+v", one)
		}
	}
	for url, why := range map[string][2]string{
		url:                     {"", "401"},
		url + "?x=1":            {"fddhdb_unknown", "401"},
		web.URL + "/mcp/first/": {texts["elsewhere"], "404"},
		web.URL + "/mcp/third":  {texts["reader"], "404"},
		web.URL + "/mcp/":       {texts["reader"], "404"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(`{}`))
		check(t, err)
		answer, err := withToken{why[0]}.RoundTrip(r)
		check(t, err)
		b, err := io.ReadAll(answer.Body)
		check(t, err)
		check(t, answer.Body.Close())
		if !strings.HasPrefix(answer.Status, why[1]) || !json.Valid(b) {
			t.Errorf("%s: %s %s", url, answer.Status, b)
		}
	}
}

// A server that asks for no token has all tools, one that only reads has those that look.
func TestWithoutTokens(t *testing.T) {
	type access = func(*http.Request) (*serve.Access, error)
	for _, c := range []struct {
		access
		tools int
	}{
		{nil, 8},
		{func(*http.Request) (*serve.Access, error) { return &serve.Access{Scope: serve.Read}, nil }, 6},
	} {
		s, err := serve.New(map[string]api.Database{"a b": newDatabase(t)}, serve.Options{Access: c.access})
		check(t, err)
		h, err := Handler(s, Options{})
		check(t, err)
		web := httptest.NewServer(h)
		session, err := dial(t.Context(), web.URL+"/mcp/a%20b", "")
		check(t, err)
		if got := toolNames(t, session); len(got) != c.tools {
			t.Errorf("%q", got)
		}
		r, err := http.Post(web.URL+"/mcp/a%20b", "application/json",
			strings.NewReader(strings.Repeat(" ", maxRequest+1)))
		check(t, err)
		if r.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("a large body: %s", r.Status)
		}
		check(t, r.Body.Close())
		r, err = http.Post(web.URL+"/mcp/a%20b", "application/json", strings.NewReader(` [{}]`))
		check(t, err)
		if r.StatusCode != http.StatusBadRequest {
			t.Errorf("an array: %s", r.Status)
		}
		check(t, r.Body.Close())
		web.Close()
		check(t, s.Shutdown(t.Context()))
		// After Shutdown a request gets the error that the server is closing.
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/mcp/a%20b", strings.NewReader("{}")))
		if w.Code != http.StatusServiceUnavailable {
			t.Errorf("at the end: %d %s", w.Code, w.Body)
		}
	}
}

// An echo makes vectors of the lengths of texts.
type echo struct{}

func (echo) Modalities(_, collection string, input db.EncoderInput) []string {
	if collection != "notes" || input != db.InputText {
		return nil
	}
	return []string{"text"}
}

func (echo) Encode(_ context.Context, of serve.Encoding, text []byte) ([]float32, *db.Sparse, error) {
	if string(text) == "refuse" {
		return nil, nil, fmt.Errorf("%w: no such word", db.ErrInvalid)
	}
	x := make([]float32, of.Dim)
	x[len(text)%of.Dim] = 1
	return x, nil, nil
}

// Words become vectors by the server, whose errors are told; a server without such words says so.
func TestServerWords(t *testing.T) {
	for _, words := range []bool{true, false} {
		opt := serve.Options{}
		if words {
			opt.Encoder = echo{}
		}
		s, err := serve.New(map[string]api.Database{"photos": newDatabase(t)}, opt)
		check(t, err)
		tools, err := Handler(s, Options{})
		check(t, err)
		web := httptest.NewServer(tools)
		defer web.Close()
		c, err := dial(t.Context(), web.URL+"/mcp/photos", "")
		check(t, err)
		if !words {
			refused(t, c, "search", `{"collection":"notes","words":"a","from":"text"}`, "has no encoder of texts here")
			continue
		}
		r := raw(t, c, "search", `{"collection":"notes","words":"four","from":"text","k":1}`, defaultBytes)
		if r.IsError || !strings.Contains(text(r), "note 19") {
			t.Errorf("%s", text(r))
		}
		refused(t, c, "search", `{"collection":"notes","words":"refuse","from":"text"}`, "no such word")
		refused(t, c, "search", `{"collection":"notes","words":"a","from":"image"}`, "from")
	}
}

// An answer within the process comes as it is written, and ends with its reader or its handler.
func TestInside(t *testing.T) {
	ended := make(chan error, 1)
	i := &inside{http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/endless":
			for {
				if _, err := io.WriteString(w, "line\n"); err != nil {
					ended <- err
					return
				}
			}
		case "/cut":
			_, _ = io.WriteString(w, "half")
			panic(http.ErrAbortHandler)
		case "/silent":
			<-r.Context().Done()
			ended <- r.Context().Err()
		}
	})}
	get := func(ctx context.Context, path string) (*http.Response, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://inside"+path, nil)
		check(t, err)
		return i.RoundTrip(r)
	}
	r, err := get(t.Context(), "/endless")
	check(t, err)
	_, err = io.ReadFull(r.Body, make([]byte, 1000))
	check(t, err)
	check(t, r.Body.Close())
	if err := <-ended; err == nil {
		t.Error("the handler writes to nobody")
	}
	r, err = get(t.Context(), "/cut")
	check(t, err)
	if b, err := io.ReadAll(r.Body); string(b) != "half" || !errors.Is(err, errCut) {
		t.Errorf("%q, %v", b, err)
	}
	r, err = get(t.Context(), "/nothing")
	check(t, err)
	if b, err := io.ReadAll(r.Body); len(b) > 0 || err != nil || r.StatusCode != http.StatusOK {
		t.Errorf("%q, %v", b, err)
	}
	for range 100 { // the handler may end before the caller sees that its context has
		ctx, cancel := context.WithCancel(t.Context())
		go cancel()
		if _, err := get(ctx, "/silent"); !errors.Is(err, context.Canceled) {
			t.Fatalf("%v", err)
		}
		if err := <-ended; err == nil {
			t.Error("the handler goes on")
		}
	}
}
