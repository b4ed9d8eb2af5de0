package db

import (
	"context"

	"github.com/fddhdb/fddhdb/db/internal/learn"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/model"
)

// An Evaluation measures retrieval with queries whose labels are known.
type Evaluation struct {
	// Queries and Sparse hold the vectors of the queries by modality, dense or sparse: as many
	// rows each, row i belonging to query i. A modality stands in one of the two; dense and
	// sparse modalities take either form.
	Queries map[string][][]float32
	Sparse  map[string][]Sparse

	// Labels holds the labels of each query. An item is relevant to a query if
	// they have a label in common.
	Labels [][]string

	// Truth, if not nil, holds the labels of all items of the collection in database order. They
	// score the answers in place of the stored labels.
	Truth [][]string

	// Where, if not empty, is an expression that the ranked items match, see Query.Where. Truth
	// has all items nevertheless. Args are the values of its placeholders, see Query.Args.
	Where string
	Args  []any

	// Top is the N of the figures at N (map@N, ...); 0 means 50.
	Top int
}

// Evaluate measures every ordered pair of modalities, from each modality with queries to
// each other one, over the items that have a code and the target modality. If the model has
// one modality only, Evaluate measures that one against itself. It ranks the whole
// collection for each query; the curves of the metrics cost next to nothing.
func (c *Collection) Evaluate(ctx context.Context, e Evaluation) ([]Retrieval, error) {
	var out []Retrieval
	err := c.readLoaded(ctx, func(v *state.View, cv *state.CollectionView) (err error) {
		out, err = learn.Evaluate(ctx, v, cv, e.inside())
		return err
	})
	return out, err
}

// A NeighborEvaluation measures codes without labels: how many of the K items nearest to a query by
// vectors, with the metric of its modality, are among the first items by codes.
type NeighborEvaluation struct {
	// Queries and Sparse hold the vectors of the queries by modality, as in Evaluation. A modality
	// may have any number of them.
	Queries map[string][][]float32
	Sparse  map[string][]Sparse

	K       int   // the nearest items by vectors; 0 means 10
	Windows []int // numbers of first items by codes; nil means 100, 200, 500 and 1,000

	// Where, if not empty, is an expression that the items match, see Query.Where.
	Where string
	Args  []any
}

// EvaluateNeighbors measures the queries of each modality among the items that have it, by the codes of
// the space of the handle. It compares each query with all vectors and all codes: some milliseconds a
// query for 100,000 items with their vectors in memory, seconds if it has to read them. It waits
// until vectors are in memory, as far as Options.RerankCacheBytes allows. Errors: ErrNoModel if
// nothing is trained; ErrInvalid for queries that do not fit, and for an index-only collection, which
// has no vectors.
func (c *Collection) EvaluateNeighbors(ctx context.Context, e NeighborEvaluation) ([]NeighborRecall, error) {
	in := &learn.NeighborEvaluation{Queries: e.Queries, Sparse: insideSparse(e.Sparse), K: e.K, Windows: e.Windows, Where: e.Where, Args: e.Args}
	// Vectors that are in memory need not be read for each query.
	err := c.read(func(_ *state.View, cv *state.CollectionView) error {
		for t, m := range cv.Modalities {
			if len(e.Queries[m.Name]) > 0 && cv.WantVectors(t) {
				c.db.search.Wanted()
			}
		}
		return nil
	})
	if err == nil {
		err = c.db.WaitForIndex(ctx)
	}
	if err != nil {
		return nil, err
	}
	var out []NeighborRecall
	err = c.readLoaded(ctx, func(v *state.View, cv *state.CollectionView) (err error) {
		out, err = learn.EvaluateNeighbors(ctx, c.db.search, v, cv, in)
		return err
	})
	return out, err
}

// readLoaded gives f the state that the handle shows, when its codes are in memory.
func (c *Collection) readLoaded(ctx context.Context, f func(v *state.View, cv *state.CollectionView) error) error {
	if err := c.loaded(ctx); err != nil {
		return err
	}
	return c.read(f)
}

// inside returns the evaluation for those inside the database.
func (e *Evaluation) inside() *learn.Evaluation {
	return &learn.Evaluation{
		Queries: e.Queries, Sparse: insideSparse(e.Sparse), Labels: e.Labels, Truth: e.Truth, Where: e.Where, Args: e.Args, Top: e.Top,
	}
}

// insideSparse returns sparse vectors for those inside the database; nil of nil.
func insideSparse(sparse map[string][]Sparse) (in map[string][]model.Vector) {
	for name, vectors := range sparse {
		if in == nil {
			in = map[string][]model.Vector{}
		}
		own := make([]model.Vector, len(vectors))
		for i, x := range vectors {
			own[i] = model.Vector(x)
		}
		in[name] = own
	}
	return in
}
