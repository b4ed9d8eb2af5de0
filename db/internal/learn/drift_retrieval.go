package learn

import (
	"context"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/model"
)

// leastQueries is the least number of queries whose mean is worth telling.
const leastQueries = 16

// A retrievalMeasure measures how well labelled items find each other by one modality. Every
// second item is a query, by the code of its projection, and searches the other half, by the
// codes of their labels. Then the halves change places. So no query finds itself, and all
// items are queries.
type retrievalMeasure struct {
	queries codec.Codes // the code of the projection of each item
	stored  codec.Codes // the code of its labels
	labels  [][]uint32  // its labels, by id
}

// newRetrievalMeasure returns a measure of codes of so many bits, without items.
func newRetrievalMeasure(bits int) retrievalMeasure {
	return retrievalMeasure{queries: codec.NewCodes(bits, 0), stored: codec.NewCodes(bits, 0)}
}

// add adds an item. It copies the codes and keeps labels.
func (r *retrievalMeasure) add(query, stored codec.Code, labels []uint32) {
	r.queries.Append(query)
	r.stored.Append(stored)
	r.labels = append(r.labels, labels)
}

// mean returns the mean average precision, expected over ties, of the queries that share a
// label with the other half; nil if they are fewer than leastQueries. It costs n^2 / 2
// distances for n items.
func (r *retrievalMeasure) mean(ctx context.Context) (*float64, error) {
	sum, n := 0.0, 0
	for half := range 2 {
		bits := r.queries.Bits()
		queries, stored := codec.NewCodes(bits, 0), codec.NewCodes(bits, 0)
		var asked, found [][]uint32
		// The labels of the stored half. A query without any of them has nothing to find, and would
		// count as 0 in the mean.
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
		// The halves may have different numbers of queries: weigh each query alike.
		sum += m.MAPTie * float64(m.Queries)
		n += m.Queries
	}
	if n < leastQueries {
		return nil, nil
	}
	mean := sum / float64(n)
	return &mean, nil
}
