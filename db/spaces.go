package db

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/learn"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/model/fit"
)

// A Space is the number of a space of codes, which a training makes. Searches use the active one:
// TrainOptions.Activate and Collection.Activate choose it.
type Space = report.Space

// ActiveSpace is the space that searches use. For a handle that InSpace has returned it is the space of the
// handle.
const ActiveSpace Space = 0

// Spaces returns all spaces of codes of the collection, by ascending number, with the kept
// revisions of each. In a snapshot it returns the spaces of that state. It reads descriptors of a
// few KB, not models.
func (c *Collection) Spaces(ctx context.Context) ([]report.SpaceInfo, error) {
	return look(c, func(v *state.View, cv *state.CollectionView) (all []report.SpaceInfo, err error) {
		for i := range cv.Spaces {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			info, err := cv.SpaceInfo(v.Snap, &cv.Spaces[i])
			if err != nil {
				return nil, err
			}
			all = append(all, *info)
		}
		return all, nil
	})
}

// InSpace returns a handle on the same collection whose searches, codes, evaluations, encodings and
// statistics use one space, active or not. InSpace(ActiveSpace, 0) returns a handle without a space of its
// own. The Space argument of a method takes precedence.
//
// A revision other than 0 is a kept revision of the space: the handle encodes queries and items by its
// projections, and cursors of that revision go on. Stored codes are the same in all revisions. Databases that
// have the same revisions (ImportRevision) so give the same answers while they change to a new one in turn.
// The first call by an older revision reads its projections from disk.
//
// Writes through the handle go into all spaces, as always; Train and Rollback ignore the space of the handle.
// A space that is being built gives ErrBusy, an unknown space or revision ErrNotFound, and so does the handle
// once they have been dropped. A handle costs nothing; any number of goroutines may share it.
func (c *Collection) InSpace(space Space, revision uint32) (*Collection, error) {
	in := *c
	in.space, in.revision = uint32(space), revision
	if err := in.read(func(*state.View, *state.CollectionView) error { return nil }); err != nil {
		return nil, err
	}
	return &in, nil
}

// spaceOr returns the number of the named space, or of the space of the handle; 0 is the active
// one.
func (c *Collection) spaceOr(named Space) uint32 { return cmp.Or(uint32(named), c.space) }

// Activate makes another space the one that searches use, in one commit; the space before it stands by.
// Activating the active space does nothing. A space that is being built gives ErrBusy, an unknown one
// ErrNotFound.
func (c *Collection) Activate(ctx context.Context, space Space) error {
	number, changes := c.spaceOr(space), false
	err := c.changeSpaces(ctx, false, func(tx *state.Tx, s *state.CollectionState) (err error) {
		changes, err = tx.ActivateSpace(s, number)
		return err
	})
	if err == nil && changes {
		c.db.changed(ctx, event.SpaceActivated, event.Event{Collection: c.name, Space: number})
	}
	return err
}

// Rollback makes the space that was active before the present one active again, in one
// commit, and returns its number. Doing it twice changes nothing. Without such a space, or
// after it has been dropped, the error is ErrInvalid.
func (c *Collection) Rollback(ctx context.Context) (space Space, err error) {
	err = c.changeSpaces(ctx, false, func(tx *state.Tx, s *state.CollectionState) error {
		sp, err := tx.Rollback(s)
		space = Space(sp)
		return err
	})
	if err == nil {
		c.db.changed(ctx, event.SpaceActivated, event.Event{Collection: c.name, Space: uint32(space)})
	}
	return space, err
}

// DropSpace deletes a space with its codes, its model and its revisions, in one commit. The active space
// cannot be dropped (ErrInvalid): activate another one first. Name the space: ActiveSpace is refused, too.
// You can drop a space that is being built, whose training gets ErrNotFound, and a space with damaged codes,
// which prevent writes to the collection. Snapshots still see a dropped space.
func (c *Collection) DropSpace(ctx context.Context, space Space) error {
	number := uint32(space)
	err := c.changeSpaces(ctx, true, func(tx *state.Tx, s *state.CollectionState) error {
		return tx.DropSpaceNamed(s, number)
	})
	if err == nil {
		c.db.learning.Dropped(c.id, number)
		c.db.changed(ctx, event.SpaceDropped, event.Event{Collection: c.name, Space: number})
	}
	return err
}

// changeSpaces runs f in the committer, when all codes are in memory. A drop frees disk space, and
// damaged codes do not prevent it.
func (c *Collection) changeSpaces(ctx context.Context, drops bool,
	f func(tx *state.Tx, s *state.CollectionState) error) error {
	if err := c.db.state.Guard.Enter(); err != nil {
		return err
	}
	defer c.db.state.Guard.Leave()
	if err := c.writable(); err != nil {
		return err
	}
	if err := c.inside().Loaded(ctx); err != nil && !(drops && errors.Is(err, fault.ErrCorrupt)) {
		return err
	}
	if drops {
		return c.inside().Free(ctx, f)
	}
	return c.inside().Do(ctx, 0, f)
}

// RestoreRevision makes a new revision of the space that has the projections of a kept revision. It takes out
// of the statistics what rows have taught since. These rows teach again only when you write them again or
// train, even if you restore a later revision. Labels that have got a direction since cannot be taken back
// (ErrInvalid). A revision that is not kept gives ErrNotFound. ErrBusy: writes keep replacing the rows to
// take out.
func (c *Collection) RestoreRevision(ctx context.Context, space Space,
	revision uint32) (*report.Update, error) {
	in, leave, err := c.learning(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	return in.Restore(ctx, c.spaceOr(space), revision)
}

// maxModelFile bounds the input of ImportModel: a commit holds no larger model.
const maxModelFile = 3 << 30

// ExportModel writes the model of the active space, or of the handle's space (InSpace), after all updates so
// far. The form is fit.File. Read it by ImportModel into another collection, or by a program that encodes
// with it. Labels are stored by name. The bytes depend only on the model and its training: two trainings that
// differ only in time and memory give the same bytes. ErrNoModel: there is no training, or items bring their
// codes.
func (c *Collection) ExportModel(ctx context.Context, w io.Writer) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if w == nil {
		return fault.Invalid("nothing to write the model to")
	}
	b, err := look(c, func(v *state.View, cv *state.CollectionView) ([]byte, error) {
		sp := cv.Space
		if sp == nil || sp.Learned == nil {
			return nil, fmt.Errorf("%w: collection %q: train it first", fault.ErrNoModel, cv.Name)
		}
		stored, err := spaces.ReadReport(v.Snap, cv.ID, sp.ID)
		if err != nil {
			return nil, err
		}
		var report fit.Report
		if len(stored) > 0 {
			if err := json.Unmarshal(stored, &report); err != nil {
				return nil, fault.Corrupt(err, "report of space %d", sp.ID)
			}
		}
		var labels []string
		for _, id := range sp.Learned.Labels() {
			name, _ := cv.Labels.Name(id)
			if record.CheckLabel(name) != nil { // it has lost its name to another label
				name = ""
			}
			labels = append(labels, name)
		}
		f, err := fit.NewFile(sp.Learned, labels, &report)
		if err != nil {
			return nil, fault.Invalid("the model of space %d of collection %q: %w", sp.ID, cv.Name, err)
		}
		return f.MarshalBinary()
	})
	if err != nil {
		return err
	}
	_, err = w.Write(b)
	return err
}

// ImportModelOptions are the options of ImportModel. The zero value will do.
type ImportModelOptions struct {
	// Activate makes the space of the model the active one when all items have codes in it. The first space
	// of a collection becomes active in any case.
	Activate bool `json:"activate,omitempty"`

	// Space, if not 0, is the number for the new space, for databases whose spaces should have the same
	// numbers. It must be greater than the numbers of all existing spaces, else it is ErrExists. The number
	// of a dropped space may be used again, as after an interrupted import; cursors of the dropped space then
	// go on in the new one.
	Space Space `json:"space,omitempty"`

	// Unbuilt leaves the items without codes: the space is being built until Reindex has completed it.
	Unbuilt bool `json:"unbuilt,omitempty"`

	// Progress, unless nil, is called with the stage "encode", in items.
	Progress event.Progress `json:"-"`
}

// ImportModel makes a code space with a model that ExportModel has written, and gives all items their codes
// there, as Train does with a new model; readers and writers go on. The collection must have the modalities
// of the model, with their dimensions and forms, and may have more. Labels are matched by name: an item with
// labels that the model knows gets the code that they have where the model was trained, and any other item
// gets the code of its vectors. No item of the collection has taught the model: a later Update learns from
// the items of the collection alone. The result is the report of the original training, with the figures of
// the new space.
//
// It costs the time of encoding the items, and reads all of r, up to 3 GiB, into memory. Errors: ErrInvalid
// for a damaged or foreign file, or if the collection lacks a modality of the model; *codec.FormatError for
// another format; ErrBusy while another space is being installed or built. After an error the collection is
// unchanged, except that labels of the model may have ids, which no call shows.
func (c *Collection) ImportModel(ctx context.Context, r io.Reader,
	opt ImportModelOptions) (*report.Training, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	ctx, ended := work.Hearing(ctx, &opt.Progress)
	defer ended()
	in, leave, err := c.learning(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	f, err := readModelFile(r)
	if err != nil {
		return nil, err
	}
	if err := c.takesModel(ctx, f); err != nil {
		return nil, err
	}
	op := in.DB.Signals.Begin(ctx, event.OpImportModel, in.Name)
	defer op.Abandon()
	space, t, err := in.ImportModel(ctx, f, learn.ImportOptions{Activate: opt.Activate,
		Progress: op.Telling(opt.Progress), Space: uint32(opt.Space), Unbuilt: opt.Unbuilt})
	e := in.Unbuilt(space)
	if err == nil {
		e = event.Event{Space: uint32(t.Space), Revision: t.Revision, Items: int64(t.Items),
			Attrs: []slog.Attr{
				slog.Int("bits", t.Bits), slog.Bool("active", t.Active),
			}}
	}
	op.End(err, e)
	return t, err
}

// ImportRevisionOptions are the options of ImportRevision. The zero value is for the active space.
type ImportRevisionOptions struct {
	Space Space // the space to revise; 0: the active one

	// Revision, if not 0, is the number of the new revision, for databases whose revisions should have the
	// same numbers. It must be greater than the present number, else the error is ErrExists. Skipped numbers
	// stand for the same revision.
	Revision uint32
}

// ImportRevision makes the model of a file the next revision of a space. ExportModel or a program with
// package model has written the file, after an Update of the same model elsewhere. Encoding uses the new
// projections from then on, and stored codes stay as they are, as after Update. Labels that have grown there
// (UpdateOptions.GrowLabels) grow here too, and the items that carry them get new codes. If the space has
// that revision already, ImportRevision only makes the codes that an interrupted call has left out.
//
// The statistics do not change: a later Update here learns only from the items here. Update.Teacher is
// "imported".
//
// ImportRevision reads all of r, up to 3 GiB, into memory. Errors: ErrInvalid for a damaged or foreign file,
// or if the model is no revision of this space's model or lacks labels that have grown here; ErrExists if
// ImportRevisionOptions.Revision is not greater than the present revision; *codec.FormatError for another
// format; ErrNoModel, ErrNotFound and ErrBusy as from Update. After an error, labels of the model may have
// ids all the same, which no call shows.
func (c *Collection) ImportRevision(ctx context.Context, r io.Reader,
	opt ImportRevisionOptions) (*report.Update, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	in, leave, err := c.learning(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	f, err := readModelFile(r)
	if err != nil {
		return nil, err
	}
	if err := c.takesModel(ctx, f); err != nil {
		return nil, err
	}
	op := in.DB.Signals.Begin(ctx, event.OpUpdate, in.Name)
	defer op.Abandon()
	u, err := in.ImportRevision(ctx, f, uint32(c.spaceOr(opt.Space)), opt.Revision)
	op.End(err, learn.UpdateEvent(u))
	return u, err
}

// readModelFile reads a model file.
func readModelFile(r io.Reader) (*fit.File, error) {
	if r == nil {
		return nil, fault.Invalid("no model file")
	}
	b, err := io.ReadAll(io.LimitReader(r, maxModelFile+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxModelFile {
		return nil, fault.Invalid("a model file of more than %d bytes", maxModelFile)
	}
	f, err := fit.UnmarshalFile(b)
	var newer *codec.FormatError
	if err != nil && !errors.As(err, &newer) {
		return nil, fault.Invalid("it is no model file, or a damaged one: %s", fault.Problem(err))
	}
	return f, err
}

// takesModel checks that the model suits the collection, and gives its labels ids.
func (c *Collection) takesModel(ctx context.Context, f *fit.File) error {
	_, err := look(c, func(_ *state.View, cv *state.CollectionView) (struct{}, error) {
		if cv.CodesOnly() {
			return struct{}{}, fault.Invalid("collection %q has no model: its items bring their codes",
				cv.Name)
		}
		if _, err := cv.MatchAll(f.Modalities()); err != nil {
			return struct{}{}, fault.Invalid("collection %q: %w", cv.Name, err)
		}
		return struct{}{}, nil
	})
	if err != nil || len(f.Labels()) == 0 {
		return err
	}
	b := c.db.NewBatch()
	if err := b.RegisterLabels(c, f.Labels()); err != nil {
		return err
	}
	return b.Commit(ctx)
}
