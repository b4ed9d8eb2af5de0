package serve

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/rest"
)

// testServer serves a database with two collections of codes, each with an item.
func testServer(t testing.TB, opt Options) (*Server, *db.DB) {
	t.Helper()
	d, err := db.Open(filepath.Join(t.TempDir(), "db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"open", "secret"} {
		c, err := d.CreateCollection(t.Context(), name, db.Schema{Bits: 16})
		if err == nil {
			_, err = c.Put(t.Context(), &db.Item{Key: "item", Code: []byte{1, 2},
				Labels: []string{"label of " + name}})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	s, err := New(map[string]api.Database{"photos": api.Folder(d, nil)}, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, d
}

// tokensOf makes a file of tokens with the scopes and collections of a map, and returns their texts.
func tokensOf(t testing.TB, tokens *Tokens, of map[string]string) map[string]string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokens")
	texts := map[string]string{}
	var list []Token
	for name, what := range of {
		scope, only, _ := strings.Cut(what, " ")
		a, err := ParseAccess(name, scope, only)
		if err != nil {
			t.Fatal(err)
		}
		text, token := NewToken(a)
		texts[name], list = text, append(list, token)
	}
	if err := WriteTokens(path, list); err != nil {
		t.Fatal(err)
	}
	if err := tokens.Load(path); err != nil {
		t.Fatal(err)
	}
	return texts
}

// ask sends a request to a handler.
func ask(h http.Handler, method, path, token, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// pathOf returns a path of a route, in a collection.
func pathOf(o *route, collection string) string {
	return strings.NewReplacer("{database}", "photos", "{collection}", collection, "{key}", "item",
		"{mark}", "m",
		"{space}", "1", "{modality}", "image", "{job}", "none").Replace(o.path)
}

// A token reaches no route above its scope, and none of another collection; without a token nothing is
// reached. The refusals are the same whether there is such a collection or not, and tell no names.
func TestScopes(t *testing.T) {
	var tokens Tokens
	s, d := testServer(t, Options{Access: tokens.Access})
	texts := tokensOf(t, &tokens, map[string]string{"read": "read *", "write": "write *", "admin": "admin *",
		"only": "write open"})
	before, err := d.Stats()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"read": "read", "write": "write", "admin": "admin",
		"only": "write"} {
		var own rest.Databases
		w := ask(s, "GET", "/v1", texts[name], "")
		if err := json.Unmarshal(w.Body.Bytes(), &own); err != nil || own.Scope != want {
			t.Errorf("%s has the scope %q, %v: %s", name, own.Scope, err, w.Body)
		}
	}
	refused := 0
	for _, o := range s.routes.routes {
		if o.scope == 0 {
			continue
		}
		check := func(who, token, collection string, want int) {
			t.Helper()
			w := ask(s, o.method, pathOf(o, collection), token, "{}")
			var p rest.Problem
			if w.Code != want || json.Unmarshal(w.Body.Bytes(), &p) != nil || p.Code == "" {
				t.Errorf("%s: %s %s: %d %s, want %d", who, o.method, pathOf(o, collection), w.Code, w.Body,
					want)
			}
			if body := w.Body.String(); strings.Contains(body, "secret") || strings.Contains(body,
				"label of") {
				t.Errorf("%s: %s %s tells: %s", who, o.method, o.path, body)
			}
			refused++
		}
		check("nobody", "", "secret", http.StatusUnauthorized)
		check("a stranger", "fddhdb_WRONG", "missing", http.StatusUnauthorized)
		if o.scope > Read {
			check("read", texts["read"], "open", http.StatusForbidden)
		}
		if o.scope > Write {
			check("write", texts["write"], "open", http.StatusForbidden)
		}
		if strings.Contains(o.path, "{collection}") {
			check("only", texts["only"], "secret", http.StatusForbidden)
			check("only", texts["only"], "missing", http.StatusForbidden)
		}
	}
	if after, err := d.Stats(); err != nil || after.Sequence != before.Sequence {
		t.Errorf("refused requests have changed something: %d and %d commits, %v", before.Sequence,
			after.Sequence, err)
	}
	t.Log(refused, "requests were refused")

	w := ask(s, "GET", "/v1/photos/collections", texts["only"], "")
	if w.Code != http.StatusOK || strings.Contains(w.Body.String(), "secret") {
		t.Errorf("the collections of a token: %d %s", w.Code, w.Body)
	}
	for token, want := range map[string]int{"only": http.StatusForbidden, "read": http.StatusOK} {
		w := ask(s, "POST", "/v1/photos/collections/open:pairs", texts[token], `{"against":"secret"}`)
		if w.Code != want {
			t.Errorf("pairs with a collection that %s may not see: %d %s", token, w.Code, w.Body)
		}
	}
	for change, want := range map[string]int{
		`{"collection":"open","delete":"none"}`:   http.StatusOK,
		`{"collection":"secret","delete":"item"}`: http.StatusForbidden,
		`{"collection":"none","delete":"item"}`:   http.StatusForbidden,
		`{"mark":{"name":"a","value":""}}`:        http.StatusForbidden, // it is of the whole database
	} {
		if w = ask(s, "POST", "/v1/photos:write", texts["only"], change); w.Code != want {
			t.Errorf("%s: %d %s", change, w.Code, w.Body)
		}
	}
	// Names of collections may be of one database.
	for only, want := range map[string]int{"photos/open": http.StatusOK, "other/open": http.StatusNotFound,
		"other/open,photos/open": http.StatusOK, "photos/secret": http.StatusForbidden} {
		texts := tokensOf(t, &tokens, map[string]string{"a": "read " + only})
		w := ask(s, "GET", "/v1/photos/collections/open", texts["a"], "")
		names := ask(s, "GET", "/v1", texts["a"], "")
		if knows := strings.Contains(names.Body.String(), "photos"); w.Code != want ||
			knows != strings.Contains(only, "photos") {
			t.Errorf("%s: %d %s, %s", only, w.Code, w.Body, names.Body)
		}
	}
	for _, path := range []string{"/healthz", "/readyz", "/openapi.json"} {
		if w := ask(s, "GET", path, "", ""); w.Code >= 300 || strings.Contains(w.Body.String(), "photos") {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

// A file of tokens that is wrong is an error that names the line, and the tokens stay those of before.
func TestBadTokenFiles(t *testing.T) {
	var tokens Tokens
	texts := tokensOf(t, &tokens, map[string]string{"a": "read *"})
	request := httptest.NewRequest("GET", "/", nil)
	request.Header.Set("Authorization", "Bearer "+texts["a"])
	hash := strings.Repeat("0", 64)
	for text, want := range map[string]string{
		"a read *":                 "line 1: NAME SCOPE COLLECTIONS HASH are expected",
		"# fine\na root * " + hash: `line 2: `,
		"a read * 00":              "the hash is not 64 hexadecimal digits",
		"a read * " + hash + "\na read * " + hash:  "line 2: there are two tokens of the name a",
		"a read x,,y " + hash:                      "the collections",
		"\x1b[31m read * " + hash:                  "the name",
		"a read * " + strings.Repeat("z", 64) + "": "hexadecimal",
		strings.Repeat("x", 1<<20):                 "too long",
	} {
		path := filepath.Join(t.TempDir(), "tokens")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := tokens.Load(path)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%.80q: %v, want %s", text, err, want)
		}
		if a, err := tokens.Access(request); err != nil || a.Name != "a" {
			t.Errorf("after %.80q: %v, %v", text, a, err)
		}
	}
	if err := tokens.Load(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a file that is not there")
	}
}

// A site that a browser shows cannot ask a server of this machine.
func TestLocal(t *testing.T) {
	s, _ := testServer(t, Options{})
	h := Local(s)
	for _, x := range []struct {
		host, site, origin string
		ok                 bool
	}{
		{"127.0.0.1:7070", "", "", true},
		{"localhost:7070", "same-origin", "http://localhost:7070", true},
		{"[::1]:7070", "none", "", true},
		{"evil.example", "", "", false},
		{"127.0.0.1.evil.example", "", "", false},
		{"127.0.0.1:7070", "cross-site", "", false},
		{"127.0.0.1:7070", "same-site", "", false},
		{"127.0.0.1:7070", "", "http://evil.example", false},
		{"127.0.0.1:7070", "", "null", false},
	} {
		r := httptest.NewRequest("GET", "/v1/photos/collections", nil)
		r.Host = x.host
		if x.site != "" {
			r.Header.Set("Sec-Fetch-Site", x.site)
		}
		if x.origin != "" {
			r.Header.Set("Origin", x.origin)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if ok := w.Code == http.StatusOK; ok != x.ok {
			t.Errorf("%+v: %d %s", x, w.Code, w.Body)
		}
		if w.Header().Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%+v: other sites may read", x)
		}
	}
}

// Conditions of HTTP guard an item against changes that its reader has not seen.
func TestETags(t *testing.T) {
	s, _ := testServer(t, Options{})
	const path = "/v1/photos/collections/open/items/item"
	send := func(method, header, value, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		r.Header.Set(header, value)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w
	}
	tag := ask(s, "GET", path, "", "").Header().Get("ETag")
	for _, x := range []struct {
		header, value, body string
		want                int
	}{
		{"If-None-Match", "*", `{"code":"0102"}`, http.StatusPreconditionFailed},
		{"If-Match", `"other"`, `{"code":"0102"}`, http.StatusPreconditionFailed},
		{"If-Match", tag, `{"code":"0304","labels":["new"]}`, http.StatusOK},
		{"If-Match", tag, `{"code":"0506"}`, http.StatusPreconditionFailed},
		{"If-None-Match", tag, `{"code":"0506"}`, http.StatusBadRequest},
	} {
		if w := send("PUT", x.header, x.value, x.body); w.Code != x.want {
			t.Errorf("%s: %s: %d %s", x.header, x.value, w.Code, w.Body)
		}
	}
	if w := ask(s, "GET", path, "", ""); !strings.Contains(w.Body.String(), `"code":"0304"`) {
		t.Errorf("the item: %s", w.Body)
	}
	if w := send("PATCH", "If-Match", tag, `{"labels":["x"]}`); w.Code != http.StatusBadRequest {
		t.Errorf("PATCH with a condition: %d %s", w.Code, w.Body)
	}
}

// A sender that asks faster than its rate is refused, and others are not.
func TestRate(t *testing.T) {
	var tokens Tokens
	s, _ := testServer(t, Options{Access: tokens.Access, Rate: 3})
	texts := tokensOf(t, &tokens, map[string]string{"a": "read *", "b": "read *"})
	refused := 0
	for range 50 {
		w := ask(s, "GET", "/v1/photos/collections", texts["a"], "")
		if w.Code == http.StatusTooManyRequests && w.Header().Get("Retry-After") != "" {
			refused++
		} else if w.Code != http.StatusOK {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
	if refused == 0 {
		t.Error("50 requests at once were all answered, at 3 a second")
	}
	if w := ask(s, "GET", "/v1/photos/collections", texts["b"], ""); w.Code != http.StatusOK {
		t.Errorf("another sender: %d %s", w.Code, w.Body)
	}
}

// pair writes a certificate of this machine, and its key.
func pair(t *testing.T, name string) (cert, key string, pool *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der},
		key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool = x509.NewCertPool()
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool.AddCert(parsed)
	return cert, key, pool
}

// A server with a certificate speaks HTTP/2, takes a new certificate without an end, and ends when its
// context does: a request under way is answered, and a job is cancelled.
func TestServeTLS(t *testing.T) {
	s, d := testServer(t, Options{})
	var c Certificate
	cert, key, pool := pair(t, "first")
	if err := c.Load(cert, key); err != nil {
		t.Fatal(err)
	}
	if err := c.Load(key, cert); err == nil {
		t.Error("a key in the place of a certificate")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, s, s, l, c.Config()) }()
	url := "https://" + l.Addr().String() + "/v1/photos/collections"
	get := func(pool *x509.CertPool) *http.Response {
		t.Helper()
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}
		defer transport.CloseIdleConnections()
		r,
			err := (&http.Client{Transport: transport}).Get(url)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, r.Body)
		_ = r.Body.Close()
		return r
	}
	if r := get(pool); r.StatusCode != http.StatusOK || r.ProtoMajor != 2 {
		t.Errorf("%s %s", r.Proto, r.Status)
	}
	cert, key, pool = pair(t, "second")
	if err := c.Load(cert, key); err != nil {
		t.Fatal(err)
	}
	if r := get(pool); r.StatusCode != http.StatusOK {
		t.Errorf("after another certificate: %s", r.Status)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	w := ask(s, "PUT", "/v1/photos/collections/open/items/late", "", `{"code":"0102"}`)
	if w.Code != http.StatusServiceUnavailable || !bytes.Contains(w.Body.Bytes(),
		[]byte(`"code":"closing"`)) {
		t.Errorf("after the end: %d %s", w.Code, w.Body)
	}
	col, err := d.Collection("open")
	if err != nil {
		t.Fatal(err)
	}
	if has, err := dbkit.Has(t.Context(), col, "late"); has || err != nil {
		t.Errorf("a request that was refused is done: %v, %v", has, err)
	}
}

// Pages of sites that are named may send requests, and those of others may not.
func TestOrigins(t *testing.T) {
	var tokens Tokens
	s, _ := testServer(t, Options{Access: tokens.Access, Origins: []string{"https://photos.example"}})
	texts := tokensOf(t, &tokens, map[string]string{"a": "read *"})
	for origin, allowed := range map[string]string{"https://photos.example": "https://photos.example",
		"https://evil.example": "", "null": "", "https://photos.example.evil": ""} {
		for _, method := range []string{"OPTIONS", "GET"} {
			r := httptest.NewRequest(method, "/v1/photos/collections", nil)
			r.Header.Set("Origin", origin)
			r.Header.Set("Access-Control-Request-Method", "GET")
			r.Header.Set("Authorization", "Bearer "+texts["a"])
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			if got := w.Header().Get("Access-Control-Allow-Origin"); got != allowed {
				t.Errorf("%s from %s: %q is allowed", method, origin, got)
			}
			if w.Header().Get("Access-Control-Allow-Credentials") != "" {
				t.Errorf("%s from %s: cookies count", method, origin)
			}
		}
	}
}

// Long answers are compressed for who takes that, and events are not.
func TestCompression(t *testing.T) {
	s, d := testServer(t, Options{})
	c, err := d.Collection("open")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		if _, err := c.Put(t.Context(), &db.Item{Code: []byte{byte(i), 2},
			Labels: []string{"a label"}}); err != nil {
			t.Fatal(err)
		}
	}
	for accept, want := range map[string]string{"gzip": "gzip", "zstd": "zstd", "gzip, zstd": "zstd",
		"": "", "br": ""} {
		r := httptest.NewRequest("GET", "/v1/photos/collections/open:export", nil)
		r.Header.Set("Accept-Encoding", accept)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if got := w.Header().Get("Content-Encoding"); got != want || w.Code != http.StatusOK {
			t.Errorf("%q: %d, %q", accept, w.Code, got)
		}
		r = httptest.NewRequest("POST", "/v1/photos:verify", nil)
		r.Header.Set("Accept-Encoding", accept)
		r.Header.Set("Accept", "text/event-stream")
		w = httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if got := w.Header().Get("Content-Encoding"); got != "" || !strings.Contains(w.Body.String(),
			"event: end") {
			t.Errorf("events, %q: %q %s", accept, got, w.Body)
		}
	}
}

// A reader cancels jobs of its own, and not those of others; it has a part of the places for jobs.
func TestJobsOfReaders(t *testing.T) {
	var tokens Tokens
	s, _ := testServer(t, Options{Access: tokens.Access})
	texts := tokensOf(t, &tokens, map[string]string{"a": "read *", "b": "read *", "c": "write *"})
	release := make(chan struct{})
	var own *job
	for i := range maxJobs/4 + 1 {
		j := &job{cancel: func(error) {}, access: &Access{Name: "a", Scope: Read}, news: make(chan struct{}),
			form: rest.Job{ID: fmt.Sprint("job", i), State: rest.JobRunning, Database: "photos",
				Collection: "open"}}
		if err := s.jobs.add(j); (err != nil) != (i == maxJobs/4) {
			t.Errorf("job %d of a token: %v", i, err)
		}
		if i == 0 {
			own = j
			j.cancel = func(error) { close(release) }
		}
	}
	path := "/v1/photos/jobs/" + own.form.ID
	if w := ask(s, "DELETE", path, texts["b"], ""); w.Code != http.StatusForbidden {
		t.Errorf("another reader: %d %s", w.Code, w.Body)
	}
	if w := ask(s, "DELETE", path, texts["a"], ""); w.Code != http.StatusOK {
		t.Errorf("the reader itself: %d %s", w.Code, w.Body)
	}
	<-release
	own.cancel = func(error) {}
	if w := ask(s, "DELETE", path, texts["c"], ""); w.Code != http.StatusOK {
		t.Errorf("a writer: %d %s", w.Code, w.Body)
	}
}
