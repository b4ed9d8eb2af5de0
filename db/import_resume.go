package db

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/internal/bulk"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/store"
)

// open makes the folder, or reads what is there.
func (im *Import) open(ctx context.Context, head importHeader) (err error) {
	d := im.c.db
	fsys, dir := d.opts.FS, d.importDir(im.name)
	found, err := readImportHeader(fsys, dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = removeImport(fsys, dir)
	case err == nil && (found != head || im.opt.Restart):
		err = removeImport(fsys, dir)
	}
	if err != nil {
		return err
	}
	if found != head || im.opt.Restart {
		if err := d.state.Engine.Admit(2*im.opt.Bytes, false); err != nil {
			return err
		}
		if err := store.MakeDir(fsys, dir); err != nil {
			return err
		}
		if err := head.write(fsys, dir); err != nil {
			return err
		}
	}
	if im.done, im.pledged, err = readPledge(fsys, dir); err != nil {
		return err
	}
	if err := im.resume(ctx); err != nil {
		return err
	}
	im.rows = max(im.rows, im.done.rows)
	if left := im.opt.Bytes - int64(im.spool.bytes); !im.pledged && found == head {
		return d.state.Engine.Admit(im.opt.Bytes+max(left, 0), false)
	}
	return nil
}

// resume reads what has been staged.
func (im *Import) resume(ctx context.Context) error {
	d := im.c.db
	im.k = bulk.New(im.c.inside())
	var cv *state.CollectionView
	err := im.c.read(func(_ *state.View, v *state.CollectionView) error {
		cv = v
		return nil
	})
	if err != nil {
		return err
	}
	im.spool = &spool{
		fs: d.opts.FS, dir: d.importDir(im.name),
		descriptor: cv.Descriptor, labels: im.k.Labels,
	}
	err = im.spool.resume(ctx, func(h *chunkHeader, parts *[chunkParts][]byte) error { return im.take(cv.Descriptor, h, parts) })
	im.named = im.k.Labels.Count()
	im.rows, im.bytes = im.spool.rows, im.spool.bytes
	return err
}

// take adds the items of a chunk that is read to the columns. An error leaves them as they
// were.
func (im *Import) take(desc *record.Descriptor, h *chunkHeader, parts *[chunkParts][]byte) error {
	bits := 0
	if desc.CodesOnly() {
		bits = desc.Bits
	}
	if len(parts[chunkCodes]) != int(h.items)*codec.Bytes(bits) {
		return fmt.Errorf("%w: codes of a chunk", codec.ErrCorrupt)
	}
	// First everything is looked at.
	none := func([]byte) {}
	var names []string
	err := h.eachLabel(parts[chunkLabels], func(name string) { names = append(names, name) })
	if err == nil {
		err = h.eachKey(parts[chunkKeys], len(desc.Modalities), none, func(int, int) {})
	}
	if err == nil {
		err = h.eachSkip(parts[chunkSkips], func(uint64, string) {})
	}
	if err != nil {
		return err
	}
	k, first, i := im.k, im.k.Len(), 0
	var code codec.Code
	if bits > 0 {
		code = codec.NewCode(bits)
	}
	k.Register(names)
	return errors.Join(
		h.eachKey(parts[chunkKeys], len(desc.Modalities), func(key []byte) {
			if bits > 0 {
				n := codec.Bytes(bits)
				code.SetBytes(parts[chunkCodes][i*n : (i+1)*n])
			}
			k.AddKey(im.arena.add(string(key)), code)
			i++
		}, func(i, t int) { k.SetPresent(t, first+i) }),
		h.eachSkip(parts[chunkSkips], func(row uint64, why string) {
			if im.opt.Skipped != nil {
				im.opt.Skipped(int(h.rows+row), why)
			}
		}))
}

// A keyArena keeps keys side by side, and nothing of what they were cut from.
type keyArena struct{ room strings.Builder }

// add returns a copy of a key.
func (a *keyArena) add(key string) string {
	if key == "" {
		return ""
	}
	if a.room.Cap()-a.room.Len() < len(key) {
		a.room = strings.Builder{}
		a.room.Grow(1 << 16)
	}
	from := a.room.Len()
	a.room.WriteString(key)
	return a.room.String()[from:]
}
