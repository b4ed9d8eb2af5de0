package state

import (
	"context"

	"github.com/fddhdb/fddhdb/mih"
)

// Options.IndexCacheBytes bounds the memory of substring tables. Active spaces come first. Other spaces share
// the rest: they lose their tables when active ones grow, and get them back when they become active. A set
// without tables is searched by scans and by its postings in the store. Codes and rows are always in memory.

// Due returns the next build for a code set of a view, nil if there is none: a segment of its tail, tables
// for segments that lack them, or segments without tables when other sets need the memory.
func (d *Database) Due(v *View, set *CodeSetView) *mih.Build {
	if set.Table == nil {
		return nil
	}
	b := set.Table.Build()
	tables, bare, tail := set.Table.Covered()
	switch {
	case set.standing == spaceBuilding:
		// No search uses the set yet, so its tables are made when it is complete. But it grows by blocks,
		// and a long tail is slow to grow.
		if tail < maxBuildingTail {
			return nil
		}
		b.Bare = true
	case b != nil:
	case set.standing == spaceActive && bare > 0:
		if all := set.Table.Rebuild(); d.affords(v, set, all) {
			return all
		}
	case set.standing == spaceStandby && tables > 0 && !d.afford(v, set, set.Table.TableBytes()):
		b = set.Table.Rebuild()
		b.Bare = true
	}
	return b
}

// maxBuildingTail bounds the codes in the tail, outside segments, of a space that is being built.
const maxBuildingTail = 1 << 18

// affords reports whether the tables of a build fit the budget, beside the tables that the set keeps and
// those of the sets with precedence.
func (d *Database) affords(v *View, set *CodeSetView, b *mih.Build) bool {
	return d.afford(v, set, b.TableBytes()+b.KeptBytes())
}

// afford reports whether the tables of a code set may take so many bytes. Active spaces take precedence: for
// them only the tables of active spaces count.
func (d *Database) afford(v *View, set *CodeSetView, bytes int) bool {
	before := v.Tables.all
	if set.standing == spaceActive {
		before = v.Tables.active
	}
	if set.Table != nil {
		before -= set.Table.TableBytes() // it is one of these
	}
	return int64(before+bytes) <= d.tableBytes
}

// indexDue reports whether some collection of a view needs a build, or needs rows for reranking loaded.
func (d *Database) indexDue(v *View, of []*CollectionView) bool {
	for _, cv := range of {
		if d.rerankDue(v, cv) || d.keepDue(cv) {
			return true
		}
		for i := range cv.Spaces {
			if d.Due(v, &cv.Spaces[i].Codes) != nil {
				return true
			}
		}
	}
	return false
}

// IndexSpace indexes all codes that a space has now, with tables as far as the budget goes, on up to workers
// goroutines, one build after the other. It visits each code set once, so it ends however many codes arrive
// meanwhile. A space that has been dropped, or is not loaded, needs no build.
func (d *Database) IndexSpace(ctx context.Context, collection, space uint32, workers int) error {
	done := map[*CodeSet]bool{}
	for {
		built, err := d.Index(ctx, workers, func(v *View, set *CodeSetView) *mih.Build {
			if set.Collection != collection || set.Space != space || set.Table == nil || done[set.Set] {
				return nil
			}
			done[set.Set] = true
			if _, bare, _ := set.Table.Covered(); bare > 0 {
				if all := set.Table.Rebuild(); d.affords(v, set, all) {
					return all
				}
			}
			return set.Table.Build()
		})
		if !built || err != nil {
			return err
		}
	}
}
