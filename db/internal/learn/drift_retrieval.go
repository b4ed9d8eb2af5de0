package learn

import (
	"context"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/model"
)

// leastQueries is how many queries there have to be for their mean to tell something.
const leastQueries = 16

// A retrievalMeasure says how well labelled items find each other by one modality. Every
// second one makes a query, the others are what is searched, by the codes of their labels;
// and then the other way round. So no query finds itself, and all of them count.
type retrievalMeasure struct {
	queries, stored codec.Codes // of the projection, and of the labels
	labels          [][]uint32
}

func newRetrievalMeasure(bits int) retrievalMeasure {
	return retrievalMeasure{queries: codec.NewCodes(bits, 0), stored: codec.NewCodes(bits, 0)}
}

func (r *retrievalMeasure) add(query, stored codec.Code, labels []uint32) {
	r.queries.Append(query)
	r.stored.Append(stored)
	r.labels = append(r.labels, labels)
}

// mean returns the mean average precision, expected over ties, of the queries to which
// something is relevant; nil where they are too few.
func (r *retrievalMeasure) mean(ctx context.Context) (*float64, error) {
	sum, n := 0.0, 0
	for half := range 2 {
		bits := r.queries.Bits()
		queries, stored := codec.NewCodes(bits, 0), codec.NewCodes(bits, 0)
		var asked, found [][]uint32
		there := map[uint32]bool{}
		for i, labels := range r.labels {
			if i%2 == half {
				continue
			}
			stored.Append(r.stored.At(i))
			found = append(found, labels)
			for _, l := range labels {
				there[l] = true
			}
		}
		for i := half; i < len(r.labels); i += 2 {
			for _, l := range r.labels[i] {
				if there[l] {
					queries.Append(r.queries.At(i))
					asked = append(asked, r.labels[i])
					break
				}
			}
		}
		m, err := model.Evaluate(ctx, stored, found, queries, asked, 1)
		if err != nil {
			return nil, err
		}
		sum += m.MAPTie * float64(m.Queries)
		n += m.Queries
	}
	if n < leastQueries {
		return nil, nil
	}
	mean := sum / float64(n)
	return &mean, nil
}
