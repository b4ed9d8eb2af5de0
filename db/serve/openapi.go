package serve

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/internal/rest"
)

// registerOpen adds the routes that anybody may ask for.
func (s *Server) registerOpen(t *router) {
	// A busy server is alive: it answers without a place.
	handle(t, "GET", "/healthz", 0, "Say that the server runs",
		func(context.Context, *request, *none) (*none, error) { return nil, nil }).untimed = true
	// Anybody may ask, so it holds no place, and asks the databases once a second at most.
	handle(t, "GET", "/readyz", 0, "Say that the server takes requests, and that no database has failed",
		func(context.Context, *request, *none) (*none, error) { return nil, s.ready.ask(s) }).untimed = true
	document := handle(t, "GET", "/openapi.json", 0, "Describe all paths, by OpenAPI 3.1",
		func(context.Context, *request, *none) (*none, error) { return nil, nil })
	document.produces, document.status = []string{"application/json"}, http.StatusOK
	once := sync.OnceValues(s.document) // anybody may ask, and it takes milliseconds
	document.run = func(_ context.Context, r *request) error {
		b, err := once()
		if err != nil {
			return err
		}
		r.w.Header().Set("Content-Type", "application/json")
		_, _ = r.w.Write(b)
		return nil
	}
}

// wildcards are what paths have in braces.
var wildcards = regexp.MustCompile(`\{(\w+)\}`)

// document returns the OpenAPI document of the routes. Its schemas are made of the types of the handlers.
func (s *Server) document() ([]byte, error) {
	schemas := huma.NewMapRegistry("#/components/schemas/", schemaName)
	for of, as := range custom {
		schemas.RegisterTypeAlias(of, as)
	}
	version := s.opt.Version
	if version == "" {
		version = "0" // OpenAPI wants one
	}
	o := &huma.OpenAPI{OpenAPI: "3.1.0", Info: &huma.Info{Title: "fddhdb", Version: version,
		Description: "Databases of items with vectors, labels and codes. x-line is the schema of each line of a " +
			"body, x-result that of the result of a job."},
		Components: &huma.Components{Schemas: schemas}, Paths: map[string]*huma.PathItem{}}
	secure := s.opt.Access != nil
	if secure {
		o.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
			"token": {Type: "http", Scheme: "bearer"}}
	}
	for _, t := range []reflect.Type{reflect.TypeFor[rest.StreamError](), reflect.TypeFor[rest.Progress](),
		reflect.TypeFor[report.Finding]()} { // of streams
		schemas.Schema(t, true, "")
	}
	for _, route := range s.routes.routes {
		at := o.Paths[route.path]
		if at == nil {
			at = &huma.PathItem{}
			o.Paths[route.path] = at
		}
		op := route.operation(schemas, secure)
		switch route.method {
		case http.MethodGet:
			at.Get = op
		case http.MethodPost:
			at.Post = op
		case http.MethodPut:
			at.Put = op
		case http.MethodPatch:
			at.Patch = op
		case http.MethodDelete:
			at.Delete = op
		}
	}
	for _, schema := range schemas.Map() {
		tidy(schema)
	}
	return json.Marshal(o)
}

// tidy corrects what huma says of types of Go: an optional list is left out, and never null; an array is
// never null; and a format of signed numbers is none of unsigned ones.
func tidy(s *huma.Schema) {
	if s == nil {
		return
	}
	s.Nullable = s.Nullable && s.MinItems == nil
	if s.Type == "integer" && s.Minimum != nil {
		s.Format = ""
	}
	for name, p := range s.Properties {
		if p.Type == "array" && !slices.Contains(s.Required, name) {
			p.Nullable = false
		}
		tidy(p)
	}
	tidy(s.Items)
	if of, is := s.AdditionalProperties.(*huma.Schema); is {
		tidy(of)
	}
	for _, of := range s.OneOf {
		tidy(of)
	}
}

// operation returns what the document says of a route.
func (o *route) operation(schemas huma.Registry, secure bool) *huma.Operation {
	op := &huma.Operation{OperationID: operationID(o), Summary: o.summary,
		Responses: map[string]*huma.Response{}}
	if o.scope > 0 {
		op.Description = "Needs the scope " + o.scope.String() + "."
		if secure {
			op.Security = []map[string][]string{{"token": {}}}
		}
	}
	for _, name := range wildcards.FindAllStringSubmatch(o.path, -1) {
		op.Parameters = append(op.Parameters, &huma.Param{Name: name[1], In: "path", Required: true,
			Schema: &huma.Schema{Type: "string"}})
	}
	for _, p := range o.parameters {
		schema := &huma.Schema{Type: p.kind}
		if p.kind == "integer" {
			schema.Minimum = new(float64)
			if p.most < 1<<53 {
				most := float64(p.most)
				schema.Maximum = &most
			}
		}
		op.Parameters = append(op.Parameters, &huma.Param{Name: p.name, In: "query", Description: p.doc,
			Schema: schema})
	}
	for _, p := range o.headers {
		op.Parameters = append(op.Parameters, &huma.Param{Name: p.name, In: "header", Description: p.doc,
			Schema: &huma.Schema{Type: p.kind}})
	}
	schemaOf := func(t reflect.Type) map[string]*huma.MediaType {
		return map[string]*huma.MediaType{"application/json": {Schema: schemas.Schema(t, true, "")}}
	}
	// types are bodies that are not JSON.
	types := func(names []string, line reflect.Type) map[string]*huma.MediaType {
		content := map[string]*huma.MediaType{}
		for _, name := range names {
			content[name] = &huma.MediaType{}
			if name == ndjson && line != nil {
				content[name].Extensions = map[string]any{"x-line": schemas.Schema(line, true, "")}
			}
		}
		return content
	}
	switch {
	case o.accepts != nil:
		op.RequestBody = &huma.RequestBody{Content: types(o.accepts, o.line)}
	case o.in != nil:
		op.RequestBody = &huma.RequestBody{Content: schemaOf(o.in)}
	}
	response := &huma.Response{Description: "done"}
	switch {
	case o.job:
		response.Description = "begun; with Accept: text/event-stream the status is 200, and the body the events"
		response.Content = schemaOf(reflect.TypeFor[rest.Job]())
		op.Responses["200"] = &huma.Response{Description: "the events of the job",
			Content: types([]string{eventStream}, nil)}
		result := o.out
		if result == nil {
			result = reflect.TypeFor[struct{}]()
		}
		op.Extensions = map[string]any{"x-result": schemas.Schema(result, true, "Nothing")}
	case o.produces != nil:
		response.Content = types(o.produces, lineOf(o))
	case o.out != nil:
		response.Content = schemaOf(o.out)
	}
	op.Responses[strconv.Itoa(o.status)] = response
	op.Responses["default"] = &huma.Response{Description: "an error",
		Content: map[string]*huma.MediaType{"application/problem+json": {
			Schema: schemas.Schema(reflect.TypeFor[rest.Problem](), true, "")}}}
	return op
}

// operationID returns a name of a route, for programs that make clients.
func operationID(o *route) string {
	path := strings.TrimPrefix(wildcards.ReplaceAllString(o.path, ""), "/v1")
	words := strings.FieldsFunc(path, func(r rune) bool { return strings.ContainsRune("/:-.", r) })
	return strings.ToLower(o.method) + "-" + strings.Join(append(words, strconv.Itoa(strings.Count(o.path,
		"{"))), "-")
}

// schemaName returns the name of the schema of a type. Names of forms that stand beside a type of package db
// end with Form.
func schemaName(t reflect.Type, hint string) string {
	name := huma.DefaultSchemaNamer(t, hint)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if strings.HasSuffix(t.PkgPath(), "internal/rest") {
		return name + "Form"
	}
	if i := strings.LastIndexByte(t.PkgPath(), '/'); i >= 0 && t.PkgPath()[i+1:] != "db" {
		return strings.ToUpper(t.PkgPath()[i+1:i+2]) + t.PkgPath()[i+2:] + name
	}
	return name
}

// custom are the types whose JSON is not that of their fields, and the schemas of it.
var custom = map[reflect.Type]reflect.Type{
	reflect.TypeFor[rest.Vector]():      reflect.TypeFor[vectorSchema](),
	reflect.TypeFor[rest.Args]():        reflect.TypeFor[argsSchema](),
	reflect.TypeFor[rest.Fields]():      reflect.TypeFor[fieldsSchema](),
	reflect.TypeFor[rest.Expectation](): reflect.TypeFor[expectationSchema](),
	reflect.TypeFor[db.Item]():          reflect.TypeFor[itemSchema](),
	reflect.TypeFor[db.Hit]():           reflect.TypeFor[hitSchema](),
	reflect.TypeFor[db.Result]():        reflect.TypeFor[resultSchema](),
	reflect.TypeFor[db.FacetCount]():    reflect.TypeFor[facetSchema](),
	reflect.TypeFor[rest.Hex]():         reflect.TypeFor[hexSchema](),
	reflect.TypeFor[json.RawMessage]():  reflect.TypeFor[anySchema](),
}

type (
	vectorSchema      struct{}
	argsSchema        struct{}
	fieldsSchema      struct{}
	expectationSchema struct{}
	itemSchema        struct{}
	hitSchema         struct{}
	resultSchema      struct{}
	facetSchema       struct{}
	hexSchema         struct{}
	anySchema         struct{}
)

// named puts a schema among the components, and returns a reference to it.
func named(r huma.Registry, name string, of func() *huma.Schema) *huma.Schema {
	if all := r.Map(); all[name] == nil {
		all[name] = &huma.Schema{} // it may refer to itself
		all[name] = of()
	}
	return &huma.Schema{Ref: "#/components/schemas/" + name}
}

func object(required []string, properties map[string]*huma.Schema) *huma.Schema {
	return &huma.Schema{Type: "object", Properties: properties, Required: required,
		AdditionalProperties: false}
}

func listOf(of *huma.Schema) *huma.Schema { return &huma.Schema{Type: "array", Items: of} }

func text(doc string) *huma.Schema { return &huma.Schema{Type: "string", Description: doc} }

func number(doc string) *huma.Schema { return &huma.Schema{Type: "number", Description: doc} }

func whole(doc string) *huma.Schema { return &huma.Schema{Type: "integer", Description: doc} }

func nullable(s *huma.Schema) *huma.Schema {
	s.Nullable = true
	return s
}

// scalars are the values of fields and placeholders.
func scalars() []*huma.Schema {
	return []*huma.Schema{{Type: "string"}, {Type: "number"}, {Type: "boolean"}}
}

func base64Text() *huma.Schema {
	return &huma.Schema{Type: "string", ContentEncoding: "base64"}
}

func sparse(r huma.Registry) *huma.Schema {
	return named(r, "Sparse", func() *huma.Schema {
		return object([]string{"i", "v"}, map[string]*huma.Schema{"i": listOf(whole("dimensions, ascending")),
			"v": listOf(number("their numbers"))})
	})
}

// Schema implements huma.SchemaProvider, as the methods below.
func (vectorSchema) Schema(r huma.Registry) *huma.Schema {
	return named(r, "Vector", func() *huma.Schema {
		return &huma.Schema{Description: "numbers; {i, v} if the vector is sparse; or float32, little endian, in base64",
			OneOf: []*huma.Schema{listOf(number("")), sparse(r), base64Text(), {Type: "null"}}}
	})
}

func (argsSchema) Schema(huma.Registry) *huma.Schema {
	return listOf(&huma.Schema{OneOf: append(scalars(), listOf(&huma.Schema{OneOf: scalars()}))})
}

func (fieldsSchema) Schema(r huma.Registry) *huma.Schema {
	return named(r, "Fields", func() *huma.Schema {
		return &huma.Schema{Type: "object", AdditionalProperties: &huma.Schema{OneOf: append(scalars(),
			&huma.Schema{Type: "null"})}}
	})
}

func (expectationSchema) Schema(r huma.Registry) *huma.Schema {
	return object([]string{"key", "item"}, map[string]*huma.Schema{"key": text("of the item"),
		"item": {Description: "the stored item, as it was read; null: there is none",
			OneOf: []*huma.Schema{r.Schema(reflect.TypeFor[rest.Item](), true, ""), {Type: "null"}}}})
}

func (hexSchema) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: "string", Pattern: "^([0-9a-fA-F]{2})*$"}
}

func (anySchema) Schema(huma.Registry) *huma.Schema { return &huma.Schema{} }

func (itemSchema) Schema(r huma.Registry) *huma.Schema {
	return named(r, "Item", func() *huma.Schema {
		return object([]string{"key", "labels"}, map[string]*huma.Schema{
			"key": text("of the item"), "labels": listOf(text("")),
			"vectors": {Type: "object", AdditionalProperties: &huma.Schema{
				OneOf: []*huma.Schema{listOf(number("")), sparse(r)}}},
			"fields":  fieldsSchema{}.Schema(r),
			"payload": base64Text(), "code": hexSchema{}.Schema(r),
			"code_from":  text("what the code is made from"),
			"modalities": listOf(text("of an item of an index-only copy")),
		})
	})
}

func (hitSchema) Schema(r huma.Registry) *huma.Schema {
	return named(r, "Hit", func() *huma.Schema {
		return object([]string{"key", "row", "distance", "score", "similarity"}, map[string]*huma.Schema{
			"key": text("of the item"), "row": whole("its place in database order"),
			"distance":   nullable(whole("in bits; null in an answer by vectors")),
			"score":      nullable(number("how well the query agrees with the code; null for a query by code")),
			"similarity": nullable(number("of the vectors or projections; null where nothing was compared")),
			"cursor":     text("goes on behind this hit"), "item": itemSchema{}.Schema(r),
		})
	})
}

func (facetSchema) Schema(huma.Registry) *huma.Schema {
	return object([]string{"value", "items"}, map[string]*huma.Schema{
		"value": {OneOf: append(scalars(), &huma.Schema{Type: "null"})}, "items": whole("")})
}

func (resultSchema) Schema(r huma.Registry) *huma.Schema {
	return named(r, "Result", func() *huma.Schema {
		return object([]string{"hits", "next", "space", "revision"}, map[string]*huma.Schema{
			"hits": listOf(hitSchema{}.Schema(r)), "next": nullable(text("cursor: goes on behind this answer")),
			"total": whole("items within the radius"), "space": whole("of the codes; 0: an answer by vectors"),
			"revision": whole("of the space"), "rerank": text("order of the hits; auto if it is not there"),
			"distances":   listOf(whole("items at this many bits, from 0 to the radius; with include: distances")),
			"explain":     r.Schema(reflect.TypeFor[report.Explain](), true, ""),
			"facets":      listOf(r.Schema(reflect.TypeFor[db.Facets](), true, "")),
			"approximate": {Type: "boolean", Description: "items may be missing, by the recall of the index"},
		})
	})
}

// lineOf returns the type of the lines of an answer.
func lineOf(o *route) reflect.Type {
	if o.answers != nil {
		return o.answers
	}
	return o.line
}

// A readiness keeps whether the databases of a server have failed.
type readiness struct {
	mu   sync.Mutex
	when time.Time // err was found; zero: never
	err  error
}

// Times of a readiness.
const (
	readyFor  = time.Second     // an answer stays true
	readyTime = 2 * time.Second // for all databases to answer
)

// ask returns why a database does not answer, or has failed. One request asks; others wait for it.
func (x *readiness) ask(s *Server) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if time.Since(x.when) < readyFor {
		return x.err
	}
	ctx, cancel := context.WithTimeout(s.ends, readyTime)
	defer cancel()
	x.err = nil
	for name, d := range s.databases {
		_, err := d.Collections(ctx)
		if err == nil { // an empty batch stores nothing, and tells of a failed disk
			err = d.NewBatch().Commit(ctx)
		}
		if err != nil {
			s.opt.Logger.Error("not ready", "database", name, "error", err)
			x.err = &statusError{http.StatusServiceUnavailable, "failed",
				"a database does not answer, or has failed: the log of the server says why"}
		}
	}
	x.when = time.Now()
	return x.err
}
