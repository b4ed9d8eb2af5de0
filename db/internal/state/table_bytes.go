package state

// TableBytes says how many bytes tables of substrings take in memory: of a collection, or of all
// (Catalogue.Tables), where With and without keep the sum.
type TableBytes struct {
	active int // of active spaces
	all    int // of all spaces
}

// Add adds the tables of some code sets.
func (t *TableBytes) Add(sets []CodeSetView) {
	for i := range sets {
		if set := &sets[i]; set.Table != nil {
			bytes := set.Table.TableBytes()
			t.all += bytes
			if set.standing == spaceActive {
				t.active += bytes
			}
		}
	}
}

func (t TableBytes) plus(other TableBytes) TableBytes {
	return TableBytes{t.active + other.active, t.all + other.all}
}

func (t TableBytes) minus(other TableBytes) TableBytes {
	return TableBytes{t.active - other.active, t.all - other.all}
}
