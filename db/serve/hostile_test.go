package serve_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
	"github.com/fddhdb/fddhdb/db/serve"
)

// A target is a server that strangers send requests to.
type target struct {
	t      testing.TB
	server *serve.Server
	d      api.Database
	web    *httptest.Server // made by listen
	items  int              // of the collection main
	ended  bool             // the server has been shut down, and looked at before

	mu     sync.Mutex
	faults []string // that the server has logged
}

// Enabled, Handle, WithAttrs and WithGroup implement slog.Handler: a panic and an answer with status 500 are
// faults.
func (x *target) Enabled(context.Context, slog.Level) bool { return true }

func (x *target) Handle(_ context.Context, r slog.Record) error {
	text, fault := r.Message, strings.Contains(r.Message, "panic")
	r.Attrs(func(a slog.Attr) bool {
		text += " " + a.String()
		fault = fault || a.Key == "status" && a.Value.Int64() == http.StatusInternalServerError
		return true
	})
	if fault {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.faults = append(x.faults, text)
	}
	return nil
}

func (x *target) WithAttrs([]slog.Attr) slog.Handler { return x }
func (x *target) WithGroup(string) slog.Handler      { return x }

const (
	photos = "/v1/photos"
	main   = photos + "/collections/main"
)

// aim serves a small database that has learned. When the test ends, the server must have had no fault, the
// database must answer as before, and no goroutine may be left. change, if not nil, returns another database
// to serve in its place.
func aim(t testing.TB, opt serve.Options, change func(api.Database) api.Database) *target {
	t.Helper()
	here := goleak.IgnoreCurrent()
	t.Cleanup(func() {
		if !t.Failed() {
			goleak.VerifyNone(t, here)
		}
	})
	own, err := db.Open(filepath.Join(t.TempDir(), "db"), &db.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := own.Close(); err != nil {
			t.Error(err)
		}
	})
	x := &target{t: t, d: api.Folder(own, nil), items: 24}
	opt.Logger = slog.New(x)
	served := x.d
	if change != nil {
		served = change(served)
	}
	if x.server, err = serve.New(map[string]api.Database{"photos": served}, opt); err != nil {
		t.Fatal(err)
	}
	x.fill()
	t.Cleanup(x.unharmed)
	return x
}

// fill creates the collection main, with items and a model.
func (x *target) fill() {
	t := x.t
	t.Helper()
	c, err := x.d.CreateCollection(t.Context(), "main", db.Schema{
		Modalities: []db.Modality{{Name: "image", Dim: 4}, {Name: "text", Dim: 8, Sparse: true}},
		Fields: []db.Field{{Name: "year", Type: db.Int, Indexed: true},
			{Name: "title", Type: db.String}}})
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range x.items {
		it := &db.Item{Key: fmt.Sprint("key", i), Labels: []string{fmt.Sprint("class ", i%3)},
			Vectors: map[string][]float32{"image": {rng.Float32(), rng.Float32(), float32(i % 3), 1}},
			Fields:  map[string]any{"year": int64(i)}}
		if _, err := c.Put(t.Context(), it); err != nil {
			t.Fatal(err)
		}
	}
	opts := db.TrainOptions{Activate: true}
	opts.Bits, opts.Anchors = 16, 8
	if _, err := c.Train(t.Context(), opts); err != nil {
		t.Fatal(err)
	}
}

// listen serves the target at an address.
func (x *target) listen() {
	x.web = httptest.NewServer(x.server)
	x.t.Cleanup(x.web.Close)
}

// unharmed fails if the server has had a fault, or does not answer as it did.
func (x *target) unharmed() {
	x.t.Helper()
	if x.ended {
		return
	}
	x.mu.Lock()
	for _, f := range x.faults {
		x.t.Error("the server has logged: ", f)
	}
	x.faults = nil
	x.mu.Unlock()
	w := x.ask("POST", main+":count", `{}`)
	if want := fmt.Sprintf("{\"count\":%d}\n", x.items); w.Code != 200 || w.Body.String() != want {
		x.t.Errorf("count: %d %s, not %s", w.Code, w.Body, want)
	}
	w = x.ask("POST", main+":search", `{"from":"image","vector":[1,0,2,1],"k":3}`)
	if w.Code != 200 || strings.Count(w.Body.String(), `"key"`) != 3 {
		x.t.Errorf("search: %d %s", w.Code, w.Body)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := x.server.Shutdown(ctx); err != nil {
		x.t.Error("Shutdown: ", err)
	}
}

// ask sends a request within the process.
func (x *target) ask(method, path, body string, header ...string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(method, path, strings.NewReader(body))
	for _, h := range header {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	x.server.ServeHTTP(w, req)
	return w
}

// refused fails unless an answer is a problem with one of some statuses.
func (x *target) refused(what string, status int, header http.Header, body []byte, want ...int) {
	x.t.Helper()
	var p struct {
		Type, Title, Detail, Code string
		Status                    int
	}
	d := json.NewDecoder(bytes.NewReader(body))
	err := d.Decode(&p)
	fits := len(want) == 0 && status >= 400 && status < 500
	for _, s := range want {
		fits = fits || s == status
	}
	if !fits || header.Get("Content-Type") != "application/problem+json" || err != nil || p.Status != status ||
		p.Code == "" || p.Title == "" || p.Detail == "" {
		x.t.Errorf("%.300s: %d (not %v) %s %.300s", what, status, want, header.Get("Content-Type"), body)
	}
}

// An operation is a route of the document, with the names of what the target has.
type operation struct {
	method, path string
	json         bool // the body is JSON
	body         bool // it has a body
	job          bool
}

// operations returns all routes of the server.
func (x *target) operations() (all []operation) {
	x.t.Helper()
	var doc struct {
		Paths map[string]map[string]struct {
			RequestBody struct{ Content map[string]any }
			Responses   map[string]any
		}
	}
	if err := json.Unmarshal(x.ask("GET", "/openapi.json", "").Body.Bytes(), &doc); err != nil {
		x.t.Fatal(err)
	}
	names := strings.NewReplacer("{database}", "photos", "{collection}", "main", "{key}", "key1",
		"{space}", "1", "{modality}", "image", "{job}", "none", "{mark}", "none")
	for path, methods := range doc.Paths {
		for method, op := range methods {
			content := op.RequestBody.Content
			all = append(all, operation{strings.ToUpper(method), names.Replace(path),
				content["application/json"] != nil, len(content) > 0, op.Responses["202"] != nil})
		}
	}
	if len(all) < 40 {
		x.t.Fatalf("%d routes", len(all))
	}
	return all
}

// What is wrong with a request of any route is refused, before it does anything.
func TestEveryRouteRefuses(t *testing.T) {
	x := aim(t, serve.Options{}, nil)
	deep := strings.Repeat("[", 100_000)
	methods := map[string][]string{}
	for _, op := range x.operations() {
		methods[op.path] = append(methods[op.path], op.method)
	}
	for path, has := range methods {
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"} {
			if !strings.Contains(" "+strings.Join(has, " ")+" ", " "+method+" ") {
				w := x.ask(method, path, "{}")
				x.refused(method+" "+path, w.Code, w.Header(), w.Body.Bytes(), 405)
				for _, m := range has {
					if !strings.Contains(w.Header().Get("Allow"), m) {
						t.Errorf("%s %s: Allow: %s", method, path, w.Header().Get("Allow"))
					}
				}
			}
		}
	}
	for _, op := range x.operations() {
		refuse := func(query, body string, status int, header ...string) {
			t.Helper()
			w := x.ask(op.method, op.path+query, body, header...)
			what := fmt.Sprintf("%s %s%s %q %.100q", op.method, op.path, query, header, body)
			x.refused(what, w.Code, w.Header(), w.Body.Bytes(), status)
		}
		for _, query := range []string{"?nobody=1", "?space=1&space=2&nobody", "?a;b", "?%zz", "?=",
			"?%00=1", "?" + strings.Repeat("x", 1<<16) + "=1", "?\xff=1", "?a=%ff"} {
			refuse(query, "", 400)
		}
		if op.method == "GET" {
			continue
		}
		refuse("", "{}", 400, "If-Match: *", "If-None-Match: *")
		refuse("", "{}", 400, "If-Unmodified-Since: now")
		refuse("", "{}", 415, "Content-Encoding: br")
		refuse("", "{}", 415, "Content-Encoding: gzip, gzip")
		refuse("", "{}", 400, "Content-Encoding: gzip")
		refuse("", "", 400, "Content-Encoding: gzip")
		refuse("", "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff", 400, "Content-Encoding: gzip")
		refuse("", "{}", 400, "Content-Encoding: zstd")
		refuse("", "\x28\xb5\x2f\xfd\x00\xff", 400, "Content-Encoding: zstd")
		if strings.HasSuffix(op.path, ":import-model") {
			continue // any body begins the job, which fails
		}
		bodies := []string{"{", "[]", "1", `"x"`, "true", "x", "\xff", `{"nobody":1}`,
			`{"k":}`, `{"k":1,}`, `{'k':1}`, "\xef\xbb\xbf{}", "NaN", `{"\ud800":1}`, deep,
			`{"a":` + deep, "<xml/>", "a=b&c=d"}
		if !op.body || op.json {
			bodies = append(bodies, "{} {}", "{}]", "{}\x00")
		}
		for _, body := range bodies {
			refuse("", body, 400)
		}
	}
}

// Values that are out of range, of another kind or absurd are refused, or do no harm.
func TestValuesOutOfRange(t *testing.T) {
	x := aim(t, serve.Options{}, nil)
	const huge = "9223372036854775807"
	for _, request := range []string{
		`400 POST :search {"from":"image","vector":[1,0,2,1],"k":-1}`,
		`413 POST :search {"from":"image","vector":[1,0,2,1],"k":` + huge + `}`,
		`400 POST :search {"from":"image","vector":[1,0,2,1],"k":1e3}`,
		`400 POST :search {"from":"image","vector":[1,0,2,1],"k":9223372036854775808}`,
		`400 POST :search {"from":"image","vector":[1,0,2,1],"k":1.5}`,
		`400 POST :search {"from":"image","vector":[1,0,2,1],"k":"3"}`,
		`400 POST :search {"from":"image","vector":[1,0,2]}`,
		`400 POST :search {"from":"image","vector":[1,0,2,null]}`,
		`400 POST :search {"from":"image","vector":[1,0,2,1e39]}`,
		`400 POST :search {"from":"image","vector":"AADAfwAAwH8AAMB/AADAfw=="}`,
		`400 POST :search {"from":"image","vector":"AAAA"}`,
		`400 POST :search {"from":"image","vector":{"i":[1],"v":[1]},"key":"key1"}`,
		`400 POST :search {"from":"text","vector":{"i":[99],"v":[1]}}`,
		`400 POST :search {"from":"text","vector":{"i":[1,1],"v":[1,1]}}`,
		`400 POST :search {"from":"text","vector":{"i":[1],"v":[]}}`,
		`400 POST :search {"code":"0"}`, `400 POST :search {"code":"zz"}`, `400 POST :search {"code":"00"}`,
		`400 POST :search {"code":"` + strings.Repeat("00", 1<<20) + `"}`,
		`400 POST :search {"from":"image","vector":[1,0,2,1],"min_similarity":1e39}`,
		`400 POST :search {"from":"image","vector":[1,0,2,1],"recall":-1}`,
		`400 POST :search {"from":"image","vector":[1,0,2,1],"recall":2}`,
		`400 POST :search {"from":"image","vector":[1,0,2,1],"after":"AAAA"}`,
		`400 POST :search {"from":"image","vector":[1,0,2,1],"after":"` + strings.Repeat("A", 1<<20) + `"}`,
		`400 POST :search {"from":"image","vector":[1,0,2,1],"include":["all"]}`,
		`400 POST :search {"from":"image","vector":[1,0,2,1],"facets":["nobody"]}`,
		`400 POST :search {"from":"image","vector":[1,0,2,1],"plan":"magic"}`,
		`400 POST :search {"from":"image","vector":[1,0,2,1],"rerank":"magic"}`,
		`400 POST :search {"from":"image","vector":[1,0,2,1],"radius":1}`,
		`400 POST :search {"from":"image","vector":[1,0,2,1],"where":"year = ?","args":[[[1]]]}`,
		`400 POST :search {"from":"image","vector":[1,0,2,1],"where":"year = ?","args":[{}]}`,
		`400 POST :search {"from":"image","vector":[1,0,2,1],"where":"year = ?","args":[null]}`,
		`400 POST :search {"from":"image","vector":[1,0,2,1],"where":"` + strings.Repeat("(", 1<<16) + `"}`,
		`400 POST :search {"from":"image","vector":[1,0,2,1],"where":"` + strings.Repeat("NOT ", 1<<16) + `"}`,
		`400 POST :radius {"from":"image","vector":[1,0,2,1]}`,
		`400 POST :radius {"from":"image","vector":[1,0,2,1],"radius":-1}`,
		`200 POST :radius {"from":"image","vector":[1,0,2,1],"radius":` + huge + `}`,
		`400 POST :radius {"from":"image","vector":[1,0,2,1],"radius":1,"k":-` + huge + `}`,
		`400 POST :facets {"by":"label","limit":-1}`,
		`200 POST :facets {"by":"label","limit":` + huge + `}`,
		`400 POST :facets {"by":""}`,
		`400 POST :delete {}`, `400 POST :delete {"keys":[],"where":""}`,
		`200 POST :delete {"keys":[]}`, `400 POST :delete {"keys":[null,""]}`,
		`400 POST :delete {"where":"year = ?","args":[]}`,
		`400 POST :encode {}`, `400 POST :encode {"item":{}}`, `400 POST :encode {"from":"image"}`,
		`400 POST /items {}`, `400 POST /items {"labels":[""]}`, `400 POST /items {"labels":[null]}`,
		`400 POST /items {"key":"` + strings.Repeat("k", 1<<20) + `"}`,
		`400 POST /items {"key":"\u0000","fields":{"year":1e3}}`,
		`400 POST /items {"key":"a","fields":{"year":18446744073709551615}}`,
		`400 POST /items {"key":"a","fields":{"year":[1]}}`, `400 POST /items {"key":"a","fields":{"year":"1"}}`,
		`400 POST /items {"key":"a","payload":"#"}`, `400 POST /items {"key":"a","code":"0"}`,
		`400 POST /items {"key":"a","vectors":{"image":[]}}`, `400 POST /items {"key":"a","vectors":[]}`,
		`400 PUT /items/a {"key":"b"}`, `400 PUT /items/%ff {}`, `404 GET /items/%ff`, `400 DELETE /items/%ff`,
		`400 POST :rename-label {}`, `400 POST :rename-label {"old":"class 1","new":""}`,
		`404 POST :activate {"space":4294967295}`, `400 POST :activate {"space":4294967296}`,
		`400 POST :activate {"space":-1}`,
		`404 POST :restore-revision {"space":9,"revision":1}`,
		`404 DELETE /spaces/18446744073709551616`, `404 DELETE /spaces/-1`, `404 DELETE /spaces/4294967296`,
		`400 DELETE /indexes/nobody`, `405 GET :search`,
		`400 GET /keys?limit=-1`, `400 GET /keys?limit=99999999999`, `400 GET /keys?prefix=%ff`,
		`200 GET /keys?limit=2147483647`, `200 GET :export?sample=2147483647&seed=18446744073709551615`,
		`400 GET :export?sample=2147483648`, `400 GET :export?seed=18446744073709551616`,
		`400 GET :export?args={}`, `400 GET :export?args=[1`, `400 GET :export?where=%00`,
		`400 GET :export?codes=yes`, `404 GET :export?vectors=text`, `404 GET :export?vectors=%00`,
		`404 GET ?space=4294967295`, `400 GET ?space=4294967296`, `404 GET ?space=1&revision=4294967295`,
		`400 GET /stats?disk=1`, `400 GET /stats?disk=TRUE`,
		`400 PATCH  {"add_fields":[{"name":"","type":"int"}]}`, `400 PATCH  {"add_fields":[{"name":"a"}]}`,
		`400 PATCH  {"add_fields":[{"name":"a","type":"magic"}]}`,
		`400 PATCH  {"add_modalities":[{"name":"a","dim":` + huge + `}]}`,
		`400 PATCH  {"add_modalities":[{"name":"a","dim":-1}]}`,
		`400 PUT x {"modalities":[{"name":"a","dim":2097152}]}`, `400 PUT x {"bits":` + huge + `}`,
		`400 PUT x {"bits":-16}`, `400 PUT x {"modalities":[{"name":"a","dim":3,"metric":"magic"}]}`,
	} {
		status := 0
		method, path := "", ""
		var body string
		fields := strings.SplitN(request, " ", 4)
		_, _ = fmt.Sscan(fields[0], &status)
		method, path = fields[1], main+fields[2]
		if len(fields) == 4 {
			body = fields[3]
		}
		w := x.ask(method, path, body)
		if status < 300 {
			if w.Code != status {
				t.Errorf("%.200s: %d %.300s", request, w.Code, w.Body)
			}
			continue
		}
		x.refused(request, w.Code, w.Header(), w.Body.Bytes(), status)
	}
}

// A job with absurd options fails, and takes no memory for what it cannot do.
func TestJobsOutOfRange(t *testing.T) {
	x := aim(t, serve.Options{}, nil)
	const huge = "9223372036854775807"
	for _, request := range []string{
		`:train {"bits":` + huge + `}`, `:train {"bits":-8}`, `:train {"bits":1048576}`,
		`:train {"anchors":` + huge + `}`, `:train {"anchors":1099511627776}`, `:train {"anchors":-1}`,
		`:train {"sweeps":-1}`, `:train {"memory_bytes":1}`,
		`:train {"rows":-1}`, `:train {"start":-1}`, `:train {"delta":-1}`,
		`:train {"width":{"image":-1}}`, `:train {"gamma":{"nobody":1}}`, `:train {"map":{"nobody":"rbf"}}`,
		`:train {"mu":{"image":-1e308}}`, `:train {"centre":7}`, `:train {"prior":-1}`,
		`:train {"fusion":"nobody"}`,
		`:update {"space":4294967295}`, `:reindex {"space":77}`, `:reindex {"rate":-1}`,
		`:index {"modality":"image","cells":-1}`,
		`:index {"modality":"image","recall":2}`, `:index {"modality":"image","recall":-1}`, `:index {}`,
		`:evaluate {"queries":{"image":[[1,2]]},"labels":[["a"]]}`,
		`:evaluate {"queries":{"image":[[1,0,2,1],{"i":[1],"v":[1]}]},"labels":[["a"],["b"]]}`,
		`:evaluate {"queries":{"image":[null]},"labels":[["a"]]}`, `:evaluate {"queries":{},"labels":[]}`,
		`:evaluate {"queries":{"image":[[1,0,2,1]]},"labels":[["a"]],"top":-1}`,
		`:evaluate {"queries":{"image":[[1,0,2,1]]},"labels":[["a"]],"truth":[["a"]]}`,
		`:import-model ` + strings.Repeat("x", 1<<20),
	} {
		path, body, _ := strings.Cut(request, " ")
		w := x.ask("POST", main+path, body, "Accept: text/event-stream")
		if w.Code >= 400 {
			x.refused(request, w.Code, w.Header(), w.Body.Bytes())
			continue
		}
		_, end, _ := strings.Cut(w.Body.String(), "event: end\ndata: ")
		var job struct {
			State string
			Error struct {
				Status int
				Code   string
			}
		}
		if err := json.Unmarshal([]byte(end), &job); err != nil || job.State != "failed" ||
			job.Error.Code == "" || job.Error.Status >= 500 {
			t.Errorf("%.100s: %v %.400s", request, err, w.Body)
		}
	}
}
