package state

// TableBytes says how many bytes of memory tables of substrings, or rows for reranking (QuantView), take: of
// one collection, or of all (Catalogue.Tables and Rerank), where With and without keep the sum.
type TableBytes struct {
	active int // of active spaces
	all    int // of all spaces
}

// All returns the sum over all spaces.
func (t TableBytes) All() int { return t.all }

// Add adds the tables of a code set.
func (t *TableBytes) Add(set *CodeSetView) {
	if set.Table != nil {
		t.add(set.Table.TableBytes(), set.standing == spaceActive)
	}
}

func (t *TableBytes) add(bytes int, active bool) {
	t.all += bytes
	if active {
		t.active += bytes
	}
}

func (t TableBytes) plus(other TableBytes) TableBytes {
	return TableBytes{t.active + other.active, t.all + other.all}
}

func (t TableBytes) minus(other TableBytes) TableBytes {
	return TableBytes{t.active - other.active, t.all - other.all}
}
