package db

import (
	"context"

	"github.com/fddhdb/fddhdb/mih"
)

// What tables of substrings may take in memory (Options.IndexCacheBytes) goes to the
// code sets of active spaces first. Those of others have what is left: they lose their
// tables when active ones grow, and get them back when they become active.

// due returns what there is to build for a code set of a view, nil if nothing.
func (d *DB) due(v *view, set *codeSetView) *mih.Build {
	if set.table == nil {
		return nil
	}
	b := set.table.Build()
	tables, bare, tail := set.table.Covered()
	switch {
	case set.standing == spaceBuilding:
		// It grows by blocks, and nobody searches it: its tables are made when it is
		// complete. But a tail that is too long is slow to grow.
		if tail < maxBuildingTail {
			return nil
		}
		b.Bare = true
	case b != nil:
	case set.standing == spaceActive && bare > 0:
		if all := set.table.Rebuild(); d.affords(v, set, all) {
			return all
		}
	case set.standing == spaceStandby && tables > 0 && !d.afford(v, set, set.table.TableBytes()):
		b = set.table.Rebuild()
		b.Bare = true
	}
	return b
}

// maxBuildingTail is how many codes of a space that is being built are not in segments.
const maxBuildingTail = 1 << 18

// affords reports whether the tables of a build stay within the budget, with those that
// other code sets have now and keep.
func (d *DB) affords(v *view, set *codeSetView, b *mih.Build) bool {
	return d.afford(v, set, b.TableBytes()+b.KeptBytes())
}

// afford reports whether the tables of a code set may take so many bytes.
func (d *DB) afford(v *view, set *codeSetView, bytes int) bool {
	before := v.tables.all
	if set.standing == spaceActive {
		before = v.tables.active
	}
	if set.table != nil {
		before -= set.table.TableBytes() // it is one of these
	}
	return int64(before+bytes) <= d.opts.IndexCacheBytes
}

// indexDue reports whether there is something to build for one of the collections.
func (d *DB) indexDue(v *view, of []*collectionView) bool {
	for _, cv := range of {
		for i := range cv.spaces {
			for j := range cv.spaces[i].sets {
				if d.due(v, &cv.spaces[i].sets[j]) != nil {
					return true
				}
			}
		}
	}
	return false
}

// tableBytes says what tables of substrings take in memory.
type tableBytes struct {
	active int // of active spaces
	all    int
}

// add adds the tables of the code sets of a space.
func (t *tableBytes) add(sets []codeSetView) {
	for i := range sets {
		if set := &sets[i]; set.table != nil {
			bytes := set.table.TableBytes()
			t.all += bytes
			if set.standing == spaceActive {
				t.active += bytes
			}
		}
	}
}

func (t tableBytes) plus(other tableBytes) tableBytes {
	return tableBytes{t.active + other.active, t.all + other.all}
}

func (t tableBytes) minus(other tableBytes) tableBytes {
	return tableBytes{t.active - other.active, t.all - other.all}
}

// indexSpace indexes the codes that a space has, on so many goroutines.
func (d *DB) indexSpace(ctx context.Context, collection, space uint32, workers int) error {
	done := map[*codeSet]bool{}
	for {
		built, err := d.index(ctx, workers, func(v *view, set *codeSetView) *mih.Build {
			if set.Collection != collection || set.Space != space || set.table == nil || done[set.set] {
				return nil
			}
			done[set.set] = true
			if _, bare, _ := set.table.Covered(); bare > 0 {
				if all := set.table.Rebuild(); d.affords(v, set, all) {
					return all
				}
			}
			return set.table.Build()
		})
		if !built || err != nil {
			return err
		}
	}
}
