package main

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strconv"

	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/fddhdb/fddhdb/db"
)

// A service answers requests about a collection. Each request takes one of its slots.
type service struct {
	c     *db.Collection
	slots chan struct{}
}

func newService(c *db.Collection) http.Handler {
	s := &service{c, make(chan struct{}, maxRequests)}
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /items/{key}", s.handle(quick, s.put))
	mux.HandleFunc("GET /items/{key}", s.handle(quick, s.get))
	mux.HandleFunc("DELETE /items/{key}", s.handle(quick, s.delete))
	mux.HandleFunc("POST /search", s.handle(quick, s.search))
	mux.HandleFunc("POST /models", s.handle(slow, s.train))
	mux.HandleFunc("GET /models", s.handle(quick, s.models))
	mux.HandleFunc("POST /models/{space}/activate", s.handle(quick, s.activate))
	mux.HandleFunc("GET /health", s.handle(quick, s.health))
	mux.HandleFunc("/", s.handle(quick, func(ctx context.Context, r *http.Request) (any, error) {
		return nil, fmt.Errorf("%w: %s %s", db.ErrNotFound, r.Method, r.URL.Path)
	}))
	return mux
}

type item struct {
	Vectors map[string][]float32 `json:"vectors,omitempty"`
	Labels  []string             `json:"labels,omitempty"`
	Title   string               `json:"title,omitempty"`
}

func (s *service) put(ctx context.Context, r *http.Request) (any, error) {
	var it item
	if err := read(r, &it); err != nil {
		return nil, err
	}
	fields := map[string]any{}
	if it.Title != "" {
		fields["title"] = it.Title
	}
	_, err := s.c.Put(ctx, &db.Item{Key: r.PathValue("key"), Vectors: it.Vectors, Labels: it.Labels,
		Fields: fields})
	return struct{}{}, err
}

func (s *service) get(ctx context.Context, r *http.Request) (any, error) {
	it, err := s.c.Get(ctx, r.PathValue("key"))
	if err != nil {
		return nil, err
	}
	title, _ := it.Fields["title"].(string)
	return item{it.Vectors, it.Labels, title}, nil
}

func (s *service) delete(ctx context.Context, r *http.Request) (any, error) {
	n, err := s.c.Delete(ctx, r.PathValue("key"))
	return map[string]int{"deleted": n}, err
}

func (s *service) search(ctx context.Context, r *http.Request) (any, error) {
	var q struct {
		From, To, Key, Where, After string
		Args                        []any // for the placeholders of Where
		Vector                      []float32
		K                           int
	}
	if err := read(r, &q); err != nil {
		return nil, err
	}
	if q.K > maxHits {
		return nil, fmt.Errorf("%w: k = %d: at most %d are possible", db.ErrInvalid, q.K, maxHits)
	}
	// The answer is JSON as it is; its "next" is "after" of the request for more.
	return s.c.Search(ctx, db.Query{From: q.From, To: q.To, Key: q.Key, Where: q.Where, Args: q.Args,
		After: q.After, Vector: q.Vector, K: q.K})
}

// train learns a new model from what is stored, while others search and write.
func (s *service) train(ctx context.Context, r *http.Request) (any, error) {
	var options struct{ Bits int }
	if err := read(r, &options); err != nil {
		return nil, err
	}
	t, err := s.c.Train(ctx, db.TrainOptions{Options: fit.Options{Bits: cmp.Or(options.Bits, 64)}})
	if err != nil {
		return nil, err
	}
	return map[string]any{"space": t.Space, "active": t.Active, "items": t.Items,
		"seconds": t.Seconds["total"]}, nil
}

func (s *service) models(ctx context.Context, r *http.Request) (any, error) {
	all, err := s.c.Spaces(ctx)
	return append([]report.SpaceInfo{}, all...), err // none is [], not null
}

func (s *service) activate(ctx context.Context, r *http.Request) (any, error) {
	space, err := strconv.ParseUint(r.PathValue("space"), 10, 32)
	if err != nil {
		return nil, fmt.Errorf("%w: a model has a number, not %q", db.ErrInvalid, r.PathValue("space"))
	}
	return struct{}{}, s.c.Activate(ctx, db.Space(space))
}

func (s *service) health(ctx context.Context, r *http.Request) (any, error) {
	n, err := s.c.Count(ctx, "")
	return map[string]int{"items": n}, err
}
