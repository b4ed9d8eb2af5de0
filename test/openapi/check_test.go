package openapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	yaml "github.com/pb33f/go-yaml"
	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"
	"github.com/pb33f/libopenapi-validator/config"
	verrors "github.com/pb33f/libopenapi-validator/errors"
	"github.com/pb33f/libopenapi-validator/schema_validation"
	"github.com/pb33f/libopenapi/datamodel/high/base"
	v3 "github.com/pb33f/libopenapi/datamodel/high/v3"
	"github.com/pb33f/libopenapi/orderedmap"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
	"github.com/fddhdb/fddhdb/db/serve"
)

// A checker carries requests to a server, and validates them and their answers against its document.
type checker struct {
	t       *testing.T
	url     string
	model   *v3.Document
	valid   validator.Validator
	schemas schema_validation.SchemaValidator
	paths   []template

	fault func(string) // called with each fault; t.Error by default

	mu   sync.Mutex
	seen map[string]*outcomes // by method and path of the document
}

// outcomes count the answers of a route.
type outcomes struct{ succeeded, failed int }

// A template is a path of the document.
type template struct {
	path  string
	match *regexp.Regexp
	item  *v3.PathItem
}

// An encoder makes vectors of one modality, of texts and of files.
type encoder struct{}

func (encoder) Modalities(_, collection string, _ db.EncoderInput) []string {
	if collection != "main" {
		return nil
	}
	return []string{"image"}
}

func (encoder) Encode(_ context.Context, of serve.Encoding, content []byte) ([]float32, *db.Sparse, error) {
	if string(content) == "fail" {
		return nil, nil, fmt.Errorf("%w: it does not like this", serve.ErrEncoder)
	}
	x := make([]float32, of.Dim)
	for i := range x {
		x[i] = float32(i % len(content))
	}
	return x, nil, nil
}

// serving serves a new database, named photos, and reads the document of the server.
func serving(t *testing.T, opt serve.Options) *checker {
	t.Helper()
	d, err := db.Open(filepath.Join(t.TempDir(), "db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	opt.Encoder = encoder{}
	opt.Decode = func(content io.ReadSeeker) (image.Image, error) {
		b, err := io.ReadAll(content)
		if err != nil || b[len(b)-1] == 0 {
			return nil, errors.New("it does not like this")
		}
		return image.NewGray(image.Rect(0, 0, 9, 8)), nil
	}
	s, err := serve.New(map[string]api.Database{"photos": api.Folder(d, stores)}, opt)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(s)
	t.Cleanup(func() {
		web.Close()
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	c := &checker{t: t, url: web.URL, seen: map[string]*outcomes{}, fault: func(s string) { t.Error(s) }}
	r, err := http.Get(web.URL + "/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	document, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	c.read(document)
	return c
}

// read reads a document, which must be a valid one.
func (c *checker) read(document []byte) {
	c.t.Helper()
	doc, err := libopenapi.NewDocument(document)
	if err != nil {
		c.t.Fatal(err)
	}
	model, err := doc.BuildV3Model()
	if err != nil {
		c.t.Fatal(err)
	}
	options := []config.Option{config.WithFormatAssertions(), config.WithContentAssertions()}
	var errs []error
	if c.valid, errs = validator.NewValidator(doc, options...); len(errs) > 0 {
		c.t.Fatal(errs)
	}
	if ok, errs := c.valid.ValidateDocument(); !ok {
		c.t.Fatal("the document is not one of OpenAPI 3.1: ", text(errs))
	}
	c.schemas = schema_validation.NewSchemaValidator(options...)
	c.model = &model.Model
	for path, item := range c.model.Paths.PathItems.FromOldest() {
		pattern := regexp.QuoteMeta(path)
		pattern = regexp.MustCompile(`\\\{\w+\\\}`).ReplaceAllString(pattern, `[^/:]+`)
		c.paths = append(c.paths, template{path, regexp.MustCompile("^" + pattern + "$"), item})
	}
	// Where two paths match, the one with fewer wildcards is meant.
	slices.SortStableFunc(c.paths, func(a, b template) int {
		return strings.Count(a.path, "{") - strings.Count(b.path, "{")
	})
}

func text(errs []*verrors.ValidationError) string {
	var b strings.Builder
	for _, e := range errs {
		fmt.Fprintf(&b, "\n%s: %s", e.Message, e.Reason)
		for _, s := range e.SchemaValidationErrors {
			fmt.Fprintf(&b, "\n  at %q: %s (%s)", s.FieldPath, s.Reason, s.KeywordLocation)
		}
	}
	return b.String()
}

// RoundTrip implements http.RoundTripper.
func (c *checker) RoundTrip(req *http.Request) (*http.Response, error) {
	var sent []byte
	if req.Body != nil {
		var err error
		if sent, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
		_ = req.Body.Close()
	}
	out := req.Clone(req.Context())
	out.Body = io.NopCloser(bytes.NewReader(sent))
	r, err := http.DefaultTransport.RoundTrip(out)
	if err != nil {
		return nil, err
	}
	got, err := io.ReadAll(r.Body)
	_ = r.Body.Close()
	if err != nil {
		return nil, err
	}
	c.check(req, sent, r, got)
	r.Body = io.NopCloser(bytes.NewReader(got))
	return r, nil
}

// check validates a request that the server has answered with a success, or not for its form, and each
// answer.
func (c *checker) check(req *http.Request, sent []byte, r *http.Response, got []byte) {
	what := fmt.Sprintf("%s %s: %s", req.Method, req.URL.RequestURI(), r.Status)
	fail := func(format string, args ...any) {
		c.fault(fmt.Sprintf("%s: %s\nsent: %.500s\ngot: %.1000s", what, fmt.Sprintf(format, args...), sent, got))
	}
	i := slices.IndexFunc(c.paths, func(p template) bool {
		return p.match.MatchString(req.URL.EscapedPath())
	})
	if i < 0 {
		fail("the document has no such path")
		return
	}
	at := c.paths[i]
	op := operation(at.item, req.Method)
	if op == nil {
		if r.StatusCode != http.StatusMethodNotAllowed {
			fail("the document has no such method")
		}
		return
	}
	c.count(req.Method+" "+at.path, r.StatusCode < 300)

	request := req.Clone(req.Context())
	request.Body = io.NopCloser(bytes.NewReader(sent))
	request.ContentLength = int64(len(sent))
	switch r.StatusCode {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType,
		http.StatusLengthRequired:
	default:
		if ok, errs := c.valid.ValidateHttpRequestSyncWithPathItem(request, at.item, at.path); !ok {
			fail("the request is not as the document says: %s", text(errs))
		}
		if op.RequestBody != nil && len(sent) > 0 {
			kind, _, _ := strings.Cut(req.Header.Get("Content-Type"), ";")
			media := op.RequestBody.Content.GetOrZero(kind)
			if media == nil {
				fail("the document has no body of type %q", kind)
			} else if line := lineSchema(media); line != "" {
				c.lines(fail, sent, line)
			}
		} else if op.RequestBody == nil && len(sent) > 0 {
			fail("the document has no body here")
		}
	}
	response := *r
	response.Body = io.NopCloser(bytes.NewReader(got))
	ok, errs := c.valid.GetResponseBodyValidator().ValidateResponseBodyWithPathItem(request, &response,
		at.item, at.path)
	if !ok {
		fail("the answer is not as the document says: %s", text(errs))
	}
	described := op.Responses.Codes.GetOrZero(fmt.Sprint(r.StatusCode))
	switch {
	case r.StatusCode >= 400:
		if kind := r.Header.Get("Content-Type"); kind != "application/problem+json" {
			fail("an error of type %q", kind)
		}
		return
	case described == nil:
		fail("the document has no such status")
		return
	}
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	if orderedmap.Len(described.Content) == 0 {
		if len(got) > 0 {
			fail("the document has no content here")
		}
		return
	}
	media := described.Content.GetOrZero(kind)
	if media == nil {
		fail("the document has no answer of type %q", kind)
		return
	}
	if line := lineSchema(media); line != "" {
		c.lines(fail, got, line)
	}
	if kind == "text/event-stream" {
		c.events(fail, got)
	}
	if job := (struct{ Kind, State string }{}); kind == "application/json" {
		if json.Unmarshal(got, &job) == nil && job.State == "done" && job.Kind != "" {
			c.result(fail, job.Kind, got)
		}
	}
}

func (c *checker) count(route string, success bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.seen[route]
	if o == nil {
		o = &outcomes{}
		c.seen[route] = o
	}
	if success {
		o.succeeded++
	} else {
		o.failed++
	}
}

func operation(item *v3.PathItem, method string) *v3.Operation {
	return item.GetOperations().GetOrZero(strings.ToLower(method))
}

// lineSchema returns the name of the schema of each line of a body, or its type; "" if it has none.
func lineSchema(media *v3.MediaType) string {
	return schemaOf(media.Extensions.GetOrZero("x-line"))
}

func schemaOf(extension *yaml.Node) string {
	if extension == nil {
		return ""
	}
	var ref struct {
		Ref  string `yaml:"$ref"`
		Type string `yaml:"type"`
	}
	if extension.Decode(&ref) != nil {
		return ""
	}
	if ref.Ref == "" {
		return ref.Type
	}
	return strings.TrimPrefix(ref.Ref, "#/components/schemas/")
}

// lines validates each line against a schema of the document.
func (c *checker) lines(fail func(string, ...any), body []byte, name string) {
	n := 0
	for line := range bytes.Lines(body) {
		if bytes.HasPrefix(line, []byte(`{"error":`)) {
			name = "StreamErrorForm"
		}
		c.validate(fail, line, name)
		n++
	}
	if n == 0 && len(body) > 0 {
		fail("no lines")
	}
}

// validate validates JSON against a schema of the document.
func (c *checker) validate(fail func(string, ...any), b []byte, name string) {
	if name == "string" {
		if err := json.Unmarshal(b, new(string)); err != nil {
			fail("%.300s is not a string: %v", b, err)
		}
		return
	}
	proxy := c.model.Components.Schemas.GetOrZero(name)
	if proxy == nil {
		fail("the document has no schema %q", name)
		return
	}
	var schema *base.Schema
	if schema = proxy.Schema(); schema == nil {
		fail("the schema %q cannot be read: %v", name, proxy.GetBuildError())
		return
	}
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		fail("%.300s is not JSON: %v", b, err)
		return
	}
	if ok, errs := c.schemas.ValidateSchemaObjectWithVersion(schema, v, 3.1); !ok {
		fail("%.300s is not a %s: %s", b, name, text(errs))
	}
}

// events validates the events of a job.
func (c *checker) events(fail func(string, ...any), body []byte) {
	schemas := map[string]string{"progress": "ProgressForm", "finding": "ReportFinding", "end": "JobForm"}
	name, last := "", ""
	for line := range strings.Lines(string(body)) {
		line = strings.TrimSuffix(line, "\n")
		if rest, is := strings.CutPrefix(line, "event: "); is {
			name = rest
		}
		data, is := strings.CutPrefix(line, "data: ")
		if !is {
			continue
		}
		if schemas[name] == "" {
			fail("an event %q", name)
			return
		}
		c.validate(fail, []byte(data), schemas[name])
		last = name
		var job struct{ Kind, State string }
		if name == "end" && json.Unmarshal([]byte(data), &job) == nil && job.State == "done" {
			c.result(fail, job.Kind, []byte(data))
		}
	}
	if last != "end" {
		fail("the last event is %q", last)
	}
}

// result validates the result of a job.
func (c *checker) result(fail func(string, ...any), kind string, job []byte) {
	var form struct{ Result json.RawMessage }
	if err := json.Unmarshal(job, &form); err != nil {
		fail("%v", err)
		return
	}
	for _, p := range c.paths {
		if op := operation(p.item, "POST"); op != nil && strings.HasSuffix(p.path, ":"+kind) {
			name := schemaOf(op.Extensions.GetOrZero("x-result"))
			if name == "" {
				fail("the document does not name the result")
				return
			}
			c.validate(fail, form.Result, name)
			return
		}
	}
	fail("the document has no job %q", kind)
}

// covered fails for the routes of the document that have not succeeded, or not failed. Routes that cannot
// fail are named.
func (c *checker) covered(infallible ...string) {
	c.t.Helper()
	for _, p := range c.paths {
		for method := range maps.Keys(maps.Collect(p.item.GetOperations().FromOldest())) {
			route := strings.ToUpper(method) + " " + p.path
			o := c.seen[route]
			switch {
			case o == nil || o.succeeded == 0:
				c.t.Errorf("%s has not succeeded", route)
			case o.failed == 0 && !slices.Contains(infallible, route):
				c.t.Errorf("%s has not failed", route)
			}
		}
	}
}
