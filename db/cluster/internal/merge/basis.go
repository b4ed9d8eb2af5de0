package merge

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fddhdb/fddhdb/db"
)

// A Basis is the space, revision and order of an answer. Hits are comparable only on the same basis.
type Basis struct {
	Space    db.Space  // space of the codes; 0 by vectors
	Revision uint32    // revision of that space; 0 by vectors
	Rerank   db.Rerank // the order of the answer, as db.Result.Rerank
}

func basisOf(r *db.Result) Basis { return Basis{r.Space, r.Revision, r.Rerank} }

// String describes the basis in words.
func (b Basis) String() string {
	if b.Space == 0 {
		return "an answer by vectors"
	}
	return fmt.Sprintf("space %d, revision %d, order %v", b.Space, b.Revision, b.Rerank)
}

// A MismatchError says that shards answered on different bases, so that their hits cannot be compared.
//
// The space or revision differs while a model is being activated: ask the lagging shards again. The order
// differs after RerankAuto, because each shard chooses by its own items: ask all shards again for one order.
// RerankProjection is the choice of one database if some item lacks the modality of the query.
type MismatchError struct {
	Bases  []ShardBasis // of the shards that answered, by number
	Cursor *Basis       // basis of the earlier pages; nil at the start
}

// A ShardBasis is the basis of one shard's answer.
type ShardBasis struct {
	Shard int
	Basis
}

func (e *MismatchError) Error() string {
	var text strings.Builder
	text.WriteString("fddhdb: shards have answered differently: ")
	var seen []Basis
	for _, x := range e.Bases {
		if !slices.Contains(seen, x.Basis) {
			if len(seen) > 0 {
				text.WriteString("; ")
			}
			seen = append(seen, x.Basis)
			fmt.Fprintf(&text, "%s: %v", e.shardsOf(x.Basis), x.Basis)
		}
	}
	if e.Cursor != nil {
		fmt.Fprintf(&text, "; the cursor: %v", *e.Cursor)
	}
	return text.String()
}

// shardsOf spells the numbers of the shards with a basis: shards 0-2, 5.
func (e *MismatchError) shardsOf(b Basis) string {
	var parts []string
	n := 0
	for i := 0; i < len(e.Bases); i++ {
		if e.Bases[i].Basis != b {
			continue
		}
		from := e.Bases[i].Shard
		to := from
		for n++; i+1 < len(e.Bases) && e.Bases[i+1].Basis == b && e.Bases[i+1].Shard == to+1; n++ {
			i, to = i+1, to+1
		}
		if part := fmt.Sprint(from); from == to {
			parts = append(parts, part)
		} else {
			parts = append(parts, fmt.Sprintf("%s-%d", part, to))
		}
	}
	if n == 1 {
		return "shard " + parts[0]
	}
	return "shards " + strings.Join(parts, ", ")
}

// agree returns the common basis of all answers and of the cursor, and whether there is any. The error is a
// *MismatchError.
func agree(answers []*db.Result, from Cursor) (basis Basis, known bool, err error) {
	basis, known = from.Basis()
	differ := false
	for _, a := range answers {
		switch {
		case a == nil:
		case !known:
			basis, known = basisOf(a), true
		default:
			differ = differ || basisOf(a) != basis
		}
	}
	if !differ {
		return basis, known, nil
	}
	e := new(MismatchError)
	if before, known := from.Basis(); known {
		e.Cursor = &before
	}
	for i, a := range answers {
		if a != nil {
			e.Bases = append(e.Bases, ShardBasis{i, basisOf(a)})
		}
	}
	return Basis{}, false, e
}
