package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/dbtest"
)

// set has the items and queries of the tests.
var set = dbtest.Pairs{Modalities: schema.Modalities, Labels: 3}

// A running is a service that runs.
type running struct {
	t     *testing.T
	url   string
	end   context.CancelFunc
	ended chan error
}

func start(t *testing.T, dir string) *running {
	t.Helper()
	ctx, end := context.WithCancel(context.Background())
	r, w := io.Pipe()
	s := &running{t: t, end: end, ended: make(chan error, 1)}
	go func() {
		s.ended <- run(ctx, dir, "127.0.0.1:0", w)
		w.Close()
	}()
	lines := bufio.NewReader(r)
	line, err := lines.ReadString('\n')
	if err != nil {
		t.Fatalf("%q, %v, %v", line, err, <-s.ended)
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	s.url = strings.TrimSpace(strings.TrimPrefix(line, "serving at "))
	return s
}

// stop ends the service as a signal does.
func (s *running) stop() {
	s.t.Helper()
	s.end()
	if err := <-s.ended; err != nil {
		s.t.Error(err)
	}
	http.DefaultClient.CloseIdleConnections()
}

// ask sends a request, and returns the status and the answer.
func ask(method, url string, body any) (int, map[string]any, error) {
	var b []byte
	if text, ok := body.(string); ok {
		b = []byte(text)
	} else if body != nil {
		b, _ = json.Marshal(body)
	}
	r, err := http.NewRequest(method, url, bytes.NewReader(b))
	if err != nil {
		return 0, nil, err
	}
	return do(http.DefaultClient, r)
}

func do(client *http.Client, r *http.Request) (int, map[string]any, error) {
	res, err := client.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	var answer any
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		return 0, nil, fmt.Errorf("%s: the answer is no JSON: %w", res.Status, err)
	}
	m, _ := answer.(map[string]any)
	return res.StatusCode, m, nil
}

func (s *running) want(code int, method, path string, body any) map[string]any {
	s.t.Helper()
	got, answer, err := ask(method, s.url+path, body)
	if err != nil || got != code {
		s.t.Errorf("%s %s: %d %v, %v, want %d", method, path, got, answer, err, code)
	}
	return answer
}

func (s *running) fill(from, to int) {
	s.t.Helper()
	for it := range set.Items(from, to) {
		s.want(200, "PUT", "/items/"+strings.ReplaceAll(it.Key, " ", "-"),
			item{it.Vectors, it.Labels, it.Key})
	}
}

// Searches go on through trainings and changes of the model; only the space in the
// answer changes. What was written is there after the end, and searches find it.
func TestServingGoesOn(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir)
	s.fill(0, 60)
	query := map[string]any{"from": "text", "to": "image", "k": 5}
	for it := range set.Items(1, 2) {
		query["vector"] = it.Vectors["text"]
	}
	// by vectors
	if hits, is := s.want(200, "POST", "/search", query)["hits"].([]any); !is || len(hits) != 5 {
		t.Errorf("before there is a model: %v", hits)
	}
	if res, err := http.Get(s.url + "/models"); err != nil {
		t.Error(err)
	} else if b, err := io.ReadAll(res.Body); err != nil || strings.TrimSpace(string(b)) != "[]" ||
		res.Body.Close() != nil {
		t.Errorf("before there is a model: %s, %v", b, err)
	}
	if a := s.want(200, "POST", "/models", map[string]int{"bits": 16}); a["space"] != 1. ||
		a["active"] != true {
		t.Errorf("the first model: %v", a)
	}

	// Some clients search and others write, while the next model is trained and takes
	// over.
	stop := make(chan struct{})
	var others sync.WaitGroup
	for range 2 {
		others.Go(func() {
			last := 0.
			for {
				code, a, err := ask("POST", s.url+"/search", query)
				if err != nil || code != 200 || len(a["hits"].([]any)) != 5 {
					t.Errorf("while serving: %d %v, %v", code, a, err)
					return
				}
				if space := a["space"].(float64); space < last {
					t.Errorf("an answer of model %g after one of %g", space, last)
				} else {
					last = space
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	others.Go(func() { s.fill(60, 80) })
	if a := s.want(200, "POST", "/models", map[string]int{"bits": 24}); a["space"] != 2. ||
		a["active"] != false {
		t.Errorf("the second model: %v", a)
	}
	s.want(200, "POST", "/models/2/activate", nil)
	close(stop)
	others.Wait()
	if a := s.want(200, "POST", "/search", query); a["space"] != 2. {
		t.Errorf("the second model does not answer: %v", a)
	}
	s.want(200, "GET", "/models", nil)
	if a := s.want(200, "GET", "/health", nil); a["items"] != 80. {
		t.Errorf("%v", a)
	}
	s.stop()

	d := dbtest.Open(t, dir, &db.Options{MustExist: true})
	c, err := d.Collection("main")
	if err != nil {
		t.Fatal(err)
	}
	dbtest.CheckSearches(t, c, db.Query{From: "text", To: "image", Vector: query["vector"].([]float32),
		Where: "label = ?", Args: []any{"label 1"}})
	if n, err := c.Count(t.Context(), ""); err != nil || n != 80 {
		t.Errorf("%d items, %v", n, err)
	}
}

// handler returns the service without a network, with some items and a model.
func handler(t *testing.T) http.Handler {
	t.Helper()
	d := dbtest.Open(t, "", nil)
	c, err := d.CreateCollection(t.Context(), "main", schema)
	if err != nil {
		t.Fatal(err)
	}
	for it := range set.Items(0, 30) {
		it.Fields = nil
		if _, err := c.Put(t.Context(), it); err != nil {
			t.Fatal(err)
		}
	}
	h := newService(c)
	if w := request(h, "POST", "/models", "{}"); w.Code != 200 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	return h
}

func request(h http.Handler, method, path, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
	return w
}

func TestAnswers(t *testing.T) {
	h := handler(t)
	for _, test := range []struct {
		method, path, body string
		code               int
		says               string
	}{
		{"PUT", "/items/a%2Fb", `{"vectors": {"text": [1, 2, 3]}, "labels": ["x"], "title": "A"}`, 200, "{}"},
		{"GET", "/items/a%2Fb", "", 200, `{"vectors":{"text":[1,2,3]},"labels":["x"],"title":"A"}`},
		{"DELETE", "/items/a%2Fb", "", 200, `{"deleted":1}`},
		{"GET", "/items/a%2Fb", "", 404, "not found"},
		{"POST", "/search", `{"key": "item 3", "k": 1}`, 200, `"score":null`},
		{"POST", "/search", `{"key": "item 3", "k": 7}`, 200, `"next":"`},
		{"POST", "/search", `{"key": "item 3", "where": "title = 'none'"}`, 200, `"hits":[]`},
		{"GET", "/models", "", 200, `"state":"active"`},
		{"PUT", "/items/a", `{"vectors": {"text": [1, 2]}}`, 400, "3 dimensions, the vector has 2"},
		{"PUT", "/items/a", `{"vectors": {"smell": [1, 2]}}`, 400, "smell"},
		{"PUT", "/items/a", `{"colour": 1}`, 400, "colour"},
		{"PUT", "/items/a", `{"vectors": {"text": [1, 2, 1e99]}}`, 400, "body of the request"},
		{"PUT", "/items/a", `{} {}`, 400, "more behind it"},
		{"PUT", "/items/a", ``, 400, "the body of the request: it is empty"},
		{"PUT", "/items/a", `{"title": "` + strings.Repeat("x", maxBody) + `"}`, 413, "too large"},
		{"POST", "/search", `{"from": "text", "vector": [1, 2, 3], "k": 1001}`, 400, "at most 1000"},
		{"POST", "/search", `{"from": "text", "vector": [1, 2, 3], "k": -1}`, 400, "k = -1"},
		{"POST", "/search", `{"key": "item 3", "where": "title = ?", "args": ["no' one"]}`, 200, `"hits":[]`},
		{"POST", "/search", `{"key": "item 3", "where": "title > "}`, 400, "column"},
		{"POST", "/search", `{"key": "item 3", "where": "title = ?"}`, 400, "placeholder 1 has no argument"},
		{"POST", "/search", `{"key": "nobody"}`, 404, "nobody"},
		{"POST", "/models", `{"bits": 3}`, 400, "bits"},
		{"POST", "/models/7/activate", "", 404, "space 7"},
		{"POST", "/models/x/activate", "", 400, "number"},
		{"POST", "/nowhere", "", 404, "POST /nowhere"},
		{"PATCH", "/search", "", 404, "PATCH /search"},
	} {
		w := request(h, test.method, test.path, test.body)
		if w.Code != test.code || !strings.Contains(w.Body.String(), test.says) ||
			!json.Valid(w.Body.Bytes()) || w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%s %s %.60s: %d %s, want %d %s", test.method, test.path, test.body, w.Code, w.Body,
				test.code, test.says)
		}
	}
}

// A client that goes away, and one too many, get the right answers.
func TestLimits(t *testing.T) {
	h := handler(t)
	gone, leave := context.WithCancel(t.Context())
	leave()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("POST", "/search",
		strings.NewReader(`{"key": "item 3"}`)).WithContext(gone))
	if w.Code != 503 || !strings.Contains(w.Body.String(), "canceled") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	var waiting sync.WaitGroup
	bodies := make([]*io.PipeWriter, maxRequests)
	for i := range bodies {
		var body *io.PipeReader
		body, bodies[i] = io.Pipe()
		waiting.Go(func() {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest("PUT", "/items/waits", body))
			if w.Code != 200 {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		})
		if _, err := io.WriteString(bodies[i], "{"); err != nil { // the body comes when the service reads it
			t.Fatal(err)
		}
	}
	if w := request(h, "GET", "/health", ""); w.Code != 503 || w.Header().Get("Retry-After") == "" {
		t.Errorf("one too many: %d %s", w.Code, w.Body)
	}
	for _, body := range bodies {
		_, _ = io.WriteString(body, "}")
		body.Close()
	}
	waiting.Wait()
	if w := request(h, "GET", "/health", ""); w.Code != 200 {
		t.Errorf("afterwards: %d %s", w.Code, w.Body)
	}
}

// slowPut begins a request, and returns while the service handles it. finish sends the
// rest of the body and waits for the answer.
func slowPut(t *testing.T, url string) (finish func() (int, error)) {
	t.Helper()
	body, w := io.Pipe()
	r, err := http.NewRequest("PUT", url, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Expect", "100-continue") // the body is sent when it is read
	code, failed := make(chan int, 1), make(chan error, 1)
	go func() {
		client := &http.Client{Transport: &http.Transport{ExpectContinueTimeout: time.Minute,
			DisableKeepAlives: true}}
		got, _, err := do(client, r)
		code <- got
		failed <- err
	}()
	if _, err := io.WriteString(w, "{"); err != nil {
		t.Fatal(err)
	}
	return func() (int, error) {
		_, _ = io.WriteString(w, `"title": "slow"}`)
		w.Close()
		return <-code, <-failed
	}
}

// A request that runs when the service ends is answered, and its write is there
// afterwards.
func TestShutdownLetsRequestsEnd(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir)
	finish := slowPut(t, s.url+"/items/slow")
	s.end()
	for { // until the service takes no more requests
		if _, _, err := ask("GET", s.url+"/health", nil); err != nil {
			break
		}
	}
	if code, err := finish(); err != nil || code != 200 {
		t.Errorf("the request that went on: %d, %v", code, err)
	}
	s.stop()
	d := dbtest.Open(t, dir, nil)
	c, err := d.Collection("main")
	if err != nil {
		t.Fatal(err)
	}
	if it, err := c.Get(t.Context(), "slow"); err != nil || it.Fields["title"] != "slow" {
		t.Errorf("%+v, %v", it, err)
	}
}

// A request that never ends does not keep the service from ending, and the database is
// closed nevertheless.
func TestShutdownCutsOff(t *testing.T) {
	grace = 10 * time.Millisecond
	defer func() { grace = 10 * time.Second }()
	dir := t.TempDir()
	s := start(t, dir)
	finish := slowPut(t, s.url+"/items/slow")
	s.end()
	if err := <-s.ended; err == nil || !strings.Contains(err.Error(), "cut off") {
		t.Errorf("the service ends with %v", err)
	}
	if _, err := finish(); err == nil {
		t.Error("the request is answered")
	}
	dbtest.VerifyFolder(t, dir, nil)
}

// The service does not start at a wrong address, or with a folder that is in use.
func TestStartErrors(t *testing.T) {
	dir := t.TempDir()
	if err := run(t.Context(), dir, "nowhere.invalid:-1", io.Discard); err == nil {
		t.Error("an address that cannot be")
	}
	s := start(t, dir)
	defer s.stop()
	if err := run(t.Context(), dir, "127.0.0.1:0", io.Discard); err == nil ||
		!strings.Contains(err.Error(), "in use") {
		t.Errorf("a second time: %v", err)
	}
}
