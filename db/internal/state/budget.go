package state

import (
	"context"

	"github.com/fddhdb/fddhdb/mih"
)

// What tables of substrings may take in memory (Options.IndexCacheBytes) goes to the code sets
// of active spaces first. Those of others have what is left: they lose their tables when
// active ones grow, and get them back when they become active. Without tables a set is
// searched by scans and by its postings in the store. Codes and their rows are in memory in
// any case.

// Due returns what there is to build for a code set of a view, nil if nothing: a segment of
// its tail, tables for segments that have none but could, or segments without tables where
// others need the memory.
func (d *Database) Due(v *View, set *CodeSetView) *mih.Build {
	if set.Table == nil {
		return nil
	}
	b := set.Table.Build()
	tables, bare, tail := set.Table.Covered()
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
		if all := set.Table.Rebuild(); d.affords(v, set, all) {
			return all
		}
	case set.standing == spaceStandby && tables > 0 && !d.afford(v, set, set.Table.TableBytes()):
		b = set.Table.Rebuild()
		b.Bare = true
	}
	return b
}

// maxBuildingTail is how many codes of a space that is being built may be in the tail, and not
// in segments.
const maxBuildingTail = 1 << 18

// affords reports whether the tables of a build stay within the budget, together with those
// that the set keeps and those of the other sets that come before it.
func (d *Database) affords(v *View, set *CodeSetView, b *mih.Build) bool {
	return d.afford(v, set, b.TableBytes()+b.KeptBytes())
}

// afford reports whether the tables of a code set may take so many bytes. Sets of active
// spaces come before all others, so that for these only the tables of active spaces count.
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

// indexDue reports whether there is something to build for one of the collections of a view, or
// rows to load that put hits in order.
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

// IndexSpace makes segments of all codes that a space has now, with tables as far as the
// budget goes, on up to workers goroutines, one build after the other. Each code set is looked
// at once, so that it ends however many codes come meanwhile. A space that has been dropped,
// or is not loaded, has nothing to build.
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
