package bulk

import (
	"context"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
)

// OneByOne says how CommitOneByOne stores items.
type OneByOne struct {
	Bytes    int64                     // estimate of what the items take
	Most     int64                     // bytes of items that one commit may have
	InParts  bool                      // several commits are possible where there is more; else that is an error
	Promise  func(commit uint64) error // as Options.Promise, for the last commit
	Progress event.Progress            // hears of commits before the last one, in the stage "storing"; may be nil
}

// partBytes is about the size of one of several commits.
const partBytes = 64 << 20

// CommitOneByOne stores items of which Commit has said ErrNotBulk, by an ordinary batch or by
// several of them. They may replace others, and have the same key.
func (k *Items) CommitOneByOne(ctx context.Context, o OneByOne) error {
	most, inParts := o.Most, o.Bytes > o.Most
	if inParts {
		if !o.InParts {
			return fault.Invalid("%d bytes of items of which some replace others, or have the same key: at most %d bytes of such can be stored in one commit: split them, or import only new items",
				o.Bytes, most)
		}
		most = min(most, partBytes)
	}
	d, id := k.Collection.DB, k.Collection.ID
	b := &Batch{DB: d, single: true}
	if names := k.Labels.All(); len(names) > 0 {
		b.Add(id, state.AddLabels, &record.Item{Labels: names})
	}
	err := k.Each(ctx, RecordPart|VectorPart, 0, k.Len(), func(i int, it *record.Item) error {
		if inParts && int64(b.Bytes) >= most {
			if err := b.Commit(ctx); err != nil {
				return err
			}
			b = &Batch{DB: d, single: true}
			if o.Progress != nil {
				o.Progress("storing", int64(i), int64(k.Len()))
			}
		}
		own := it.Clone()
		k.SetKeyAndCode(i, own)
		b.Add(id, state.PutItem, own)
		return nil
	})
	if err != nil {
		return err
	}
	if err := b.CheckSize(); err != nil {
		return err
	}
	b.Promise = o.Promise
	return b.Commit(ctx)
}
