package metamorphic

import (
	"errors"
	"fmt"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/internal/oracle"
)

// probe asks every collection some queries. Each asks for all items.
func (h *history) probe() (map[string][]db.Hit, error) {
	out := map[string][]db.Hit{}
	for _, name := range names(h.now) {
		handle, err := h.d.Collection(name)
		if err != nil {
			return nil, err
		}
		c := h.now.collections[name]
		for _, sp := range c.spaces {
			queries := map[string]db.Query{"by code": {Code: codeOf(sp.bits, 259)}}
			for _, m := range sp.modalities {
				queries["by "+m] = db.Query{From: m, Vector: vectorOf(c.modality(m), 3)}
			}
			for what, q := range queries {
				q.Space, q.K = sp.number, len(c.items)+1
				q.Rerank = db.RerankProjection // what it compares copies without vectors have, too
				res, err := handle.Search(h.ctx, q)
				if errors.Is(err, db.ErrInvalid) {
					continue // the vector is far from all anchors
				}
				if err != nil {
					return nil, err
				}
				out[fmt.Sprintf("%s in space %d, revision %d, of collection %s", what, res.Space, res.Revision, name)] = res.Hits
			}
		}
	}
	return out, nil
}

// sameAnswers compares the answers of probe at two times. It leaves out revisions that
// are missing at one of them.
func sameAnswers(before, after map[string][]db.Hit) error {
	for what, hits := range before {
		if again, ok := after[what]; ok && !oracle.SameHits(hits, again) {
			return fmt.Errorf("query %s: %v, then %v", what, hits, again)
		}
	}
	return nil
}
