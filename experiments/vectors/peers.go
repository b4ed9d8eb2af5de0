package vectors

import (
	"context"
	"math/rand"
	"runtime"
	"strconv"
	"time"

	"github.com/coder/hnsw"
	"github.com/philippgille/chromem-go"
)

// A graph is coder/hnsw. How many nodes it keeps while it searches has no effect on what
// it finds: only how many it is asked for has. So it is asked for ef items, and finds
// those of the nearest that are among them. Choosing the nearest of the ef is not timed.
type graph struct {
	graph  *hnsw.Graph[int]
	answer []hnsw.Node[int]
}

// newGraph adds the items of a file to a graph whose nodes have up to m neighbours. One
// goroutine does, as a graph wants it.
func newGraph(_ context.Context, items string, dims int, m string) (engine, *built, error) {
	g := hnsw.NewGraph[int]()
	g.Rng = rand.New(rand.NewSource(1))
	g.EfSearch = 128 // while it is built, as in USearch
	var err error
	if g.M, err = strconv.Atoi(m); err != nil {
		return nil, nil, err
	}
	var nodes []hnsw.Node[int]
	for row, err := range readRows(items, dims) {
		if err != nil {
			return nil, nil, err
		}
		nodes = append(nodes, hnsw.MakeNode(len(nodes), row))
	}
	start := time.Now()
	g.Add(nodes...)
	return &graph{graph: g}, &built{Threads: 1, Build: time.Since(start).Seconds()}, nil
}

func (g *graph) set(ef float64) { g.graph.EfSearch = int(ef) }

func (g *graph) search(_ context.Context, query []float32, k int) error {
	g.answer = g.graph.Search(query, max(k, g.graph.EfSearch))
	return nil
}

func (g *graph) found() ([]int, error) {
	var items []int
	for _, n := range g.answer {
		items = append(items, n.Key)
	}
	return items, nil
}

func (g *graph) close() error { return nil }

// A scan is chromem-go, which compares all items.
type scan struct {
	documents *chromem.Collection
	answer    []chromem.Result
}

// newChromem adds the items of a file to a collection in memory.
func newChromem(ctx context.Context, items string, dims int, _ string) (engine, *built, error) {
	// It starts as many goroutines as there are processors: this leaves them one thread.
	runtime.GOMAXPROCS(1)
	c, err := chromem.NewDB().CreateCollection("main", nil, nil)
	if err != nil {
		return nil, nil, err
	}
	start := time.Now()
	for row, err := range readRows(items, dims) {
		if err != nil {
			return nil, nil, err
		}
		if err := c.AddDocument(ctx, chromem.Document{ID: strconv.Itoa(c.Count()), Embedding: row}); err != nil {
			return nil, nil, err
		}
	}
	return &scan{documents: c}, &built{Threads: 1, Build: time.Since(start).Seconds()}, nil
}

func (s *scan) set(float64) {}

func (s *scan) search(ctx context.Context, query []float32, k int) (err error) {
	s.answer, err = s.documents.QueryEmbedding(ctx, query, min(k, s.documents.Count()), nil, nil)
	return err
}

func (s *scan) found() ([]int, error) {
	var items []int
	for _, r := range s.answer {
		i, err := strconv.Atoi(r.ID)
		if err != nil {
			return nil, err
		}
		items = append(items, i)
	}
	return items, nil
}

func (s *scan) close() error { return nil }
