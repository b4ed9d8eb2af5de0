package encoder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/db"
)

// A standIn is a service of embeddings that speaks both forms. The vector of a text is the number of its
// bytes, the number of its words, and zeros. Some texts make it misbehave.
type standIn struct {
	*httptest.Server
	requests atomic.Int32
	token    atomic.Value // the last one
	hold     chan struct{}
}

func newStandIn(t *testing.T) *standIn {
	t.Helper()
	s := &standIn{hold: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/embeddings", s.embeddings)
	mux.HandleFunc("POST /predict", s.predict)
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	t.Cleanup(func() { close(s.hold) })
	return s
}

// encoder returns an encoder of the service at a path.
func (s *standIn) encoder(t *testing.T, input db.EncoderInput, timeout time.Duration, path string,
	words ...string) *Encoder {
	t.Helper()
	e := New(Program{Modality: "text", Input: input, Command: append([]string{s.URL + path}, words...),
		Timeout: timeout})
	t.Cleanup(e.Close)
	return e
}

func standInVector(text string) []float32 {
	return []float32{float32(len(text)), float32(len(strings.Fields(text))), 0, 0, 0}
}

// misbehaves reports whether it has answered, in its way.
func (s *standIn) misbehaves(w http.ResponseWriter, r *http.Request, text string) bool {
	status := func(code int, body string) bool {
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
		return true
	}
	s.requests.Add(1)
	s.token.Store(r.Header.Get("Authorization"))
	switch text {
	case "page":
		return status(500, "<html><body>Traceback</body></html>")
	case "unauthorized":
		return status(401, `{"error":{"message":"Incorrect API key"}}`)
	case "no model":
		return status(404, `{"error":"model \"m\" not found,\n try pulling it first"}`)
	case "detail":
		return status(422, `{"detail":"Invalid request format."}`)
	case "obey":
		return status(503, "\x1b]0;title\x07"+strings.Repeat("long ", 1000))
	case "redirect":
		http.Redirect(w, r, "http://127.0.0.1:1/v1/embeddings", http.StatusTemporaryRedirect)
		return true
	case "cut":
		w.Header().Set("Content-Length", "1000")
		return status(200, `{"data":[{"index":0,`)
	case "huge":
		_, _ = io.WriteString(w, `{"data":[{"index":0,"embedding":[`)
		for range maxVectorBytes/1000 + 1 {
			if _, err := io.WriteString(w, strings.Repeat("0,", 500)); err != nil {
				break
			}
		}
		return true
	case "hang":
		select {
		case <-s.hold:
		case <-r.Context().Done():
		}
		return true
	}
	return false
}

func (s *standIn) embeddings(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Model          string
		Input          []string
		EncodingFormat string `json:"encoding_format"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || in.Model != "m" ||
		in.EncodingFormat != "float" || len(in.Input) == 0 || len(in.Input) > 64 {
		http.Error(w, fmt.Sprint("a bad request: ", in, err), http.StatusBadRequest)
		return
	}
	if s.misbehaves(w, r, in.Input[0]) {
		return
	}
	type object = map[string]any
	var data []object
	for i, text := range slices.Backward(in.Input) { // the index says which
		var x any = standInVector(text)
		switch text {
		case "short":
			x = []int{1, 2}
		case "null":
			x = []any{1, 2, 3, nil, 5}
		case "infinite":
			x = json.RawMessage("[1,2,3,4,1e99]")
		case "base64":
			x = "AACAPwAAgD8="
		case "twice":
			i = 0
		case "beyond":
			i = 64
		}
		data = append(data, object{"object": "embedding", "index": i, "embedding": x})
	}
	if in.Input[0] == "few" {
		data = data[1:]
	}
	_ = json.NewEncoder(w).Encode(object{"object": "list", "model": in.Model, "data": data,
		"usage": object{"total_tokens": 3}})
}

func (s *standIn) predict(w http.ResponseWriter, r *http.Request) {
	var entries struct {
		Clip map[string]struct{ ModelName string }
	}
	if err := json.Unmarshal([]byte(r.FormValue("entries")), &entries); err != nil {
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		return
	}
	text := r.FormValue("text")
	if f, _, err := r.FormFile("image"); entries.Clip["visual"].ModelName == "m" && err == nil {
		b, _ := io.ReadAll(f)
		text = string(b)
	} else if entries.Clip["textual"].ModelName != "m" || text == "" {
		http.Error(w, "Either image or text must be provided", http.StatusBadRequest)
		return
	}
	if s.misbehaves(w, r, text) {
		return
	}
	var clip any = standInVector(text)
	if b, err := json.Marshal(clip); err == nil && len(text)%2 == 0 { // as recent versions
		clip = string(b)
	}
	answer := map[string]any{"clip": clip}
	switch text {
	case "nothing":
		answer = map[string]any{"imageHeight": 3}
	case "nan":
		answer["clip"] = "[1, 2, 3, 4, NaN]"
	case "short":
		answer["clip"] = "[1, 2]"
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// A service of OpenAI's form gets 64 texts at most in a request, and its answers are told by their index.
func TestOpenAI(t *testing.T) {
	s := newStandIn(t)
	t.Setenv("FDDHDB_TEST_TOKEN", "secret")
	e := s.encoder(t, db.InputText, time.Hour, "/v1/embeddings", "m", "key=FDDHDB_TEST_TOKEN")
	texts := make([]string, 130)
	for i := range texts {
		texts[i] = strings.Repeat("é \n", i) + "x"
	}
	all, err := e.Encode(t.Context(), dim, texts)
	check(t, err)
	for i, text := range texts {
		if !slices.Equal(all[i].Dense, standInVector(text)) {
			t.Fatalf("text %d: %v", i, all[i].Dense)
		}
	}
	if n := s.requests.Load(); n != 3 {
		t.Errorf("%d requests for %d texts", n, len(texts))
	}
	if token := s.token.Load(); token != "Bearer secret" {
		t.Errorf("token %q", token)
	}
	if x, err := Run(t.Context(), e.Program, dim, []string{"a b"}); err != nil || x[0].Dense[1] != 2 {
		t.Errorf("%v, %v", x, err)
	}
	t.Setenv("FDDHDB_TEST_TOKEN", "")
	_, err = vector(t.Context(), e, "x")
	fails(t, err, Failed, "the environment variable FDDHDB_TEST_TOKEN, which is to have the token, is not set")
	for _, text := range texts {
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Fatal(text, err)
		}
	}
}

// Immich's form has one input in a request, and the file of a picture as it is.
func TestImmich(t *testing.T) {
	s := newStandIn(t)
	texts := make([]string, 30)
	files := make([]string, 30)
	dir := t.TempDir()
	for i := range texts {
		texts[i] = strings.Repeat("é ", i) + "x"
		files[i] = filepath.Join(dir, fmt.Sprint("picture ", i))
		check(t, os.WriteFile(files[i], []byte(texts[i]), 0o600))
	}
	for input, inputs := range map[db.EncoderInput][]string{db.InputText: texts, db.InputFile: files} {
		e := s.encoder(t, input, time.Hour, "/predict", "m")
		all, err := e.Encode(t.Context(), dim, inputs)
		check(t, err)
		for i, text := range texts {
			if !slices.Equal(all[i].Dense, standInVector(text)) {
				t.Fatalf("%s %d: %v", input, i, all[i].Dense)
			}
		}
	}
	e := s.encoder(t, db.InputFile, time.Hour, "/predict", "m")
	_, err := e.Encode(t.Context(), dim, []string{files[0], filepath.Join(dir, "nowhere"), files[1]})
	fails(t, err, Refused, "nowhere: no such file or directory")
	_, err = vector(t.Context(), e, dir)
	fails(t, err, Refused, "is not a regular file")
	broken := filepath.Join(dir, "broken")
	check(t, os.WriteFile(broken, []byte("page"), 0o600))
	_, err = e.Encode(t.Context(), dim, []string{files[0], files[1], broken})
	fails(t, err, Refused, `the encoder of text: for "`+broken+`": `+s.Listener.Addr().String()+
		": status 500 Internal Server Error")
	e = s.encoder(t, db.InputText, time.Hour, "/predict", "m")
	for text, want := range map[string]string{"nothing": `its answer has no "clip"`,
		"nan":   `"NaN", number 4, where a number was expected`,
		"short": "it answers with a vector of 2 numbers, the modality has 5 dimensions"} {
		_, err := vector(t.Context(), e, text)
		fails(t, err, Failed, want)
	}
}

// A service that is down in the middle refuses some pictures, and then ends the work.
func TestImmichGoesDown(t *testing.T) {
	var down atomic.Bool
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if down.Load() {
			http.Error(w, "out of memory", http.StatusInternalServerError)
			return
		}
		fmt.Fprint(w, `{"clip":[1,2,3]}`)
	}))
	defer s.Close()
	p := Program{Modality: "text", Input: db.InputFile, Command: []string{s.URL + "/predict", "m"}}
	var err error
	p.Fingerprint, _, err = Identify(t.Context(), p, 3)
	check(t, err)
	file := filepath.Join(t.TempDir(), "file")
	check(t, os.WriteFile(file, []byte("x"), 0o600))
	e := New(p)
	defer e.Close()
	for range 2 {
		_, refused, err := e.Each(t.Context(), 3, []string{file, file})
		check(t, err)
		if (refused[0] != nil) != down.Load() || (refused[1] != nil) != down.Load() {
			t.Errorf("down %v: %v", down.Load(), refused)
		}
		down.Store(true)
	}
	_, _, err = e.Each(t.Context(), 3, []string{file, file})
	fails(t, err, Failed, "out of memory")
}

// Whatever a service does, the error says where, and what the service says.
func TestServiceFails(t *testing.T) {
	s := newStandIn(t)
	for _, path := range []string{"/v1/embeddings", "/predict"} {
		e := s.encoder(t, db.InputText, time.Hour, path, "m")
		for text, want := range map[string]string{
			"page":         "status 500 Internal Server Error",
			"unauthorized": "status 401 Unauthorized: Incorrect API key",
			"no model":     `status 404 Not Found: model "m" not found, try pulling it first`,
			"detail":       "status 422 Unprocessable Entity: Invalid request format.",
			"obey":         "status 503 Service Unavailable: ]0;title long",
			"redirect":     "it redirects to http://127.0.0.1:1/v1/embeddings, which you have not trusted",
			"cut":          "its answer ended early",
			"huge":         "its answer has more than 32 MiB",
		} {
			_, err := vector(t.Context(), e, text)
			fails(t, err, Failed, "the encoder of text, "+s.Listener.Addr().String()+": ")
			fails(t, err, Failed, want)
			if err != nil && len(err.Error()) > 600 {
				t.Errorf("%s: an error of %d bytes", text, len(err.Error()))
			}
			if x, err := vector(t.Context(), e, "next"); err != nil || x.Dense[0] != 4 {
				t.Errorf("after %s: %v, %v", text, x.Dense, err)
			}
		}
	}
	e := s.encoder(t, db.InputText, time.Hour, "/v1/embeddings", "m")
	for text, want := range map[string]string{
		"short":    "it answers with a vector of 2 numbers, the modality has 5 dimensions",
		"null":     `"null", number 3, where a number was expected`,
		"infinite": `"1e99", number 4, where a number was expected`,
		"base64":   `"AACAPwAAgD8=" where an array of numbers was expected`,
		"beyond":   "index 64, twice or beyond the 2 texts",
		"twice":    "index 0, twice or beyond the 2 texts",
		"few":      "1 vectors for 2 texts",
	} {
		texts := []string{"first", text}
		if text == "few" {
			texts = []string{text, "x"}
		}
		_, err := e.Encode(t.Context(), dim, texts)
		fails(t, err, Failed, want)
	}
	none := s.encoder(t, db.InputText, time.Hour, "/v1/other", "m")
	_, err := vector(t.Context(), none, "x")
	fails(t, err, Failed, "status 404 Not Found: 404 page not found")
	s.Close()
	_, err = Run(t.Context(), none.Program, dim, []string{"x"}) // on a new connection
	fails(t, err, Failed, "connection refused")
}

// No text and no token goes to where a service redirects to.
func TestServiceRedirects(t *testing.T) {
	var asked atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer other.Close()
	for _, code := range []int{301, 302, 303, 307, 308} {
		from := httptest.NewServer(http.RedirectHandler(other.URL+"/v1/embeddings", code))
		t.Setenv("FDDHDB_TEST_TOKEN", "secret")
		e := New(Program{Modality: "text", Command: []string{from.URL + "/v1/embeddings", "m",
			"key=FDDHDB_TEST_TOKEN"}})
		_, err := vector(t.Context(), e, "x")
		fails(t, err, Failed, fmt.Sprintf("status %d", code))
		e.Close()
		from.Close()
	}
	if n := asked.Load(); n > 0 {
		t.Errorf("%d requests to another host", n)
	}
}

// A request ends with its time, its context and its encoder.
func TestServiceHangs(t *testing.T) {
	s := newStandIn(t)
	for _, path := range []string{"/v1/embeddings", "/predict"} {
		e := s.encoder(t, db.InputText, 50*time.Millisecond, path, "m")
		_, err := vector(t.Context(), e, "the first one may take longer")
		check(t, err)
		_, err = vector(t.Context(), e, "hang")
		fails(t, err, Late, "no answer after 50ms")

		e = s.encoder(t, db.InputText, time.Hour, path, "m")
		ctx, cancel := context.WithCancel(t.Context())
		before := s.requests.Load()
		failed := make(chan error)
		hang := func() {
			go func() {
				_, err := vector(ctx, e, "hang")
				failed <- err
			}()
			for s.requests.Load() == before { // until it has begun
				time.Sleep(time.Millisecond)
			}
		}
		hang()
		cancel()
		if err := <-failed; err != context.Canceled {
			t.Errorf("who has left gets %v", err)
		}
		if _, err := vector(t.Context(), e, "x"); err != nil { // the request has ended
			t.Error(err)
		}
		e, ctx, before = New(e.Program), t.Context(), s.requests.Load()
		hang()
		e.Close()
		if err := <-failed; err != db.ErrClosed {
			t.Errorf("at the end: %v", err)
		}
	}
}

// An address that cannot be used is refused before it is stored.
func TestFindService(t *testing.T) {
	t.Setenv("FDDHDB_TEST_TOKEN", "secret")
	for _, c := range []struct {
		want    string
		input   db.EncoderInput
		command []string
	}{
		{"", db.InputText, []string{"http://localhost:11434/v1/embeddings", "nomic-embed-text"}},
		{"", db.InputText, []string{"HTTPS://h/v1/embeddings?v=1", "m", "key=FDDHDB_TEST_TOKEN"}},
		{"", db.InputFile, []string{"http://h:3003/predict", "ViT-B-32__openai"}},
		{"the model is missing", db.InputText, []string{"http://h/v1/embeddings"}},
		{"the model is missing", db.InputText, []string{"http://h/v1/embeddings", "key=FDDHDB_TEST_TOKEN"}},
		{"FDDHDB_TEST_NONE", db.InputText, []string{"http://h/v1/embeddings", "m", "key=FDDHDB_TEST_NONE"}},
		{`"more" behind an address`, db.InputText, []string{"http://h/v1/embeddings", "m", "more"}},
		{"has no path", db.InputText, []string{"http://localhost:11434/", "m"}},
		{"has no host", db.InputText, []string{"http:///v1/embeddings", "m"}},
		{"has a password", db.InputText, []string{"http://me:secret@h/v1/embeddings", "m"}},
		{"invalid", db.InputText, []string{"http://h:x/v1/embeddings", "m"}},
		{"ends in /predict", db.InputFile, []string{"http://h/v1/embeddings", "m"}},
	} {
		p := Program{Modality: "text", Input: c.input, Command: c.command}
		err := p.Find()
		if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) ||
			strings.Contains(err.Error(), "secret")) {
			t.Errorf("%q: %v, want %q", c.command, err, c.want)
		}
		if p.Kind() == "program" {
			t.Errorf("%q is a program", c.command)
		}
	}
	if p := (Program{Command: []string{"httpd"}}); p.Kind() != "program" {
		t.Errorf("%q is %s", p.Command, p.Kind())
	}
}

// FuzzAnswers: an answer of any bytes gives a vector of finite numbers of the right dimensions, or an error.
func FuzzAnswers(f *testing.F) {
	for _, s := range []string{`{"data":[{"index":0,"embedding":[1,2,3,4,5]}]}`, `{"clip":"[1,2,3,4,5]"}`,
		`{"clip":[1,2,3,4,5]}`, `{"data":[{"index":-1,"embedding":[1]}]}`, `{"clip":"[1,NaN]"}`, `{}`, `[`,
		`{"data":[{"embedding":null}]}`} {
		f.Add([]byte(s))
	}
	var body []byte
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(body)
	}))
	f.Cleanup(s.Close)
	all := []*Encoder{New(Program{Modality: "text", Command: []string{s.URL + "/predict", "m"}}),
		New(Program{Modality: "text", Command: []string{s.URL + "/v1/embeddings", "m"}})}
	f.Fuzz(func(t *testing.T, b []byte) {
		body = b
		for _, e := range all {
			x, err := vector(t.Context(), e, "x")
			if _, is := errors.AsType[*Error](err); err != nil && !is || err == nil && len(x.Dense) != dim {
				t.Errorf("%q: %v, %v", b, x, err)
			}
			for _, v := range x.Dense {
				if v-v != 0 {
					t.Errorf("%q: %v", b, x.Dense)
				}
			}
		}
	})
}
