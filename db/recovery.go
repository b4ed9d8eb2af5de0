package db

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"slices"
	"time"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/internal/store"
)

// A Recovery says how what Open found in the store compares with what was known to be
// durable. Each commit has a number, and what a store can lose is a suffix: the latest
// commits, whole. Losses that were found earlier stay in Losses until they are
// acknowledged.
type Recovery struct {
	Found    uint64 `json:"found"`    // the last commit in the store
	Promised uint64 `json:"promised"` // the last that was known to be durable; there may have been later ones
	Losses   []Loss `json:"losses,omitempty"`

	// Problem says, where that is so, why it is not known what was durable: the side
	// file is missing or damaged, or of another database. It has been made again then,
	// but not where the database is read-only. Or the folder has been upgraded and the
	// store has not: it was replaced by an older copy, or has lost what came last.
	Problem string `json:"problem,omitempty"`
}

// Missing returns how many commits Open found to be missing: at least so many are.
func (r Recovery) Missing() uint64 {
	if r.Promised > r.Found {
		return r.Promised - r.Found
	}
	return 0
}

// A Loss is a run of commits that were durable and have gone from the store: its log was
// damaged, or it was replaced by an older copy. New commits take their numbers again.
type Loss struct {
	Found time.Time `json:"found"` // when Open saw it
	First uint64    `json:"first"`
	Last  uint64    `json:"last"`
}

// Commits returns how many commits are lost.
func (l Loss) Commits() uint64 { return l.inStore().Commits() }

// String returns the loss in words.
func (l Loss) String() string { return l.inStore().String() }

// inStore returns the loss as the side file of the store has it.
func (l Loss) inStore() store.Loss { return store.Loss{Found: l.Found, First: l.First, Last: l.Last} }

// lossesOf returns losses of the side file for callers.
func lossesOf(stored []store.Loss) []Loss {
	var all []Loss
	for _, l := range stored {
		all = append(all, Loss{Found: l.Found, First: l.First, Last: l.Last})
	}
	return all
}

// Recovery returns what Open found. A database of a format before FormatIdentity has no
// side file: nothing is known to be missing from it. The slice is the caller's.
func (d *DB) Recovery() Recovery {
	d = d.orNone()
	r := d.recovery
	if r.Losses = slices.Clone(r.Losses); d.keeper != nil {
		r.Losses = lossesOf(d.keeper.Losses())
	}
	return r
}

// AcknowledgeLosses forgets the losses in Recovery, durably: for when the database has been
// restored, or what was lost is known and made good. It returns those that are forgotten,
// and ErrReadOnly where the database is open for reading only. It waits for the disk.
func (d *DB) AcknowledgeLosses(ctx context.Context) ([]Loss, error) {
	d = d.orNone()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := d.writable(); err != nil {
		return nil, err
	}
	if err := d.state.Guard.Enter(); err != nil {
		return nil, err
	}
	defer d.state.Guard.Leave()
	if d.keeper == nil {
		return nil, nil
	}
	forgotten, err := d.keeper.Forget()
	if err == nil {
		d.counters.lost.Store(0)
	}
	return lossesOf(forgotten), err
}

// takeStock compares what the store says with what stands beside it, and brings that in
// step, unless the database is only read.
func (d *DB) takeStock() error {
	fsys, i := d.opts.FS, &d.identity
	format, err := store.ReadMarker(fsys, d.dir)
	if err != nil {
		return err
	}
	if format < i.Format && !d.opts.ReadOnly { // the end of an interrupted upgrade
		if err := store.WriteMarker(fsys, d.dir, i.Format); err != nil {
			return fault.Annotate(err, "open %s", d.dir)
		}
	}
	if i.Format < record.FormatIdentity {
		d.recovery = Recovery{Found: i.Sequence, Promised: i.Sequence}
		if format > i.Format {
			d.recovery.Problem = "the file " + store.MarkerName + " " + store.OlderStore(format, i.Format)
			d.commitsUnknown()
		}
		return nil
	}
	side, err := store.ReadCommits(fsys, d.dir)
	found, next := store.CompareCommits(i, side, err, spaces.Now())
	d.recovery = Recovery{Found: found.Found, Promised: found.Promised, Losses: lossesOf(found.Losses), Problem: found.Problem}
	if n := d.recovery.Missing(); n > 0 {
		d.state.Signals.Happened(event.CommitsMissing, slog.LevelWarn, event.Event{Attrs: []slog.Attr{
			slog.Uint64("missing", n), slog.Uint64("found", d.recovery.Found), slog.Uint64("promised", d.recovery.Promised),
		}})
	}
	if d.recovery.Problem != "" {
		d.commitsUnknown()
	}
	for _, l := range found.Losses {
		d.counters.lost.Add(l.Commits())
	}
	// A file that could not be read just now is left alone.
	known := err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, codec.ErrCorrupt)
	if !d.opts.ReadOnly && known {
		d.keeper = store.NewKeeper(fsys, d.dir, d.state.Signals, side, next, d.recovery.Problem != "")
	}
	return nil
}

// commitsUnknown tells that the side file does not say what was durable.
func (d *DB) commitsUnknown() {
	d.state.Signals.Happened(event.CommitsUnknown, slog.LevelWarn, event.Event{Attrs: []slog.Attr{slog.String("problem", d.recovery.Problem)}})
}

// UUID returns the identity of the database in 32 hexadecimal digits. It is made with the
// database, at random, and stays with it through backup and restore; copies of the folder
// share it. A database of a format before FormatIdentity has none: "".
func (d *DB) UUID() string { return d.orNone().identity.Text() }

// Format returns the format of the database, from MinFormat to NewestFormat.
func (d *DB) Format() int { return d.orNone().identity.Format }
