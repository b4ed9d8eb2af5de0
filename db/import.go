package db

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/fddhdb/fddhdb/codec"
)

// ImportOptions say what is imported. Only Source has to be set.
type ImportOptions struct {
	// Source says what the items come from, and what becomes of them: files with size and
	// time, say. An import that was interrupted goes on when one into the same collection
	// has the same source, and begins anew otherwise. It is UTF-8, at most 1 MiB.
	Source string

	// Bytes, if known, is about what the items take in memory. An import for which there
	// is no room is refused with ErrDiskFull before it begins.
	Bytes int64

	// Restart forgets what an interrupted import has staged.
	Restart bool

	// Skipped, if not nil, hears of the rows that the import that goes on had skipped, in
	// order; see Import.Skip. NewImport calls it.
	Skipped func(row int, why string)

	// InParts allows items that replace others to be stored in several commits, where they
	// are more than one can hold. Else Commit refuses these. A process that ends in between
	// leaves some of them stored; the import that goes on stores all, those without key again.
	InParts bool

	// Progress, if not nil, hears what Commit is doing, "encoding" or "storing", and how many
	// items that is done for; 0 of 0 where that is not known. It is called by one goroutine
	// at a time.
	Progress func(stage string, done, total int)
}

// maxSourceBytes bounds ImportOptions.Source.
const maxSourceBytes = 1 << 20

// An Import brings many items into a collection in one commit, as a Batch does, but holds
// them in files meanwhile, in the folder of the database: there may be more of them than
// fit into memory, and an import that is interrupted, even as its process is killed, goes
// on where it was. Nothing of it is visible until Commit.
//
// Memory is some 20 megabytes, for each item the key that it brings and 16 bytes, or nothing
// where it brings none, and its code in a codes-only collection. Commit takes for each item
// the code, 3 bytes and 4 a view in each space, and where items bring keys 32 bytes and a key
// more; besides what the database keeps of the item anyway. Disk space is that of the items,
// and during Commit twice that. Not safe for concurrent use; but others may use the database
// and the collection.
type Import struct {
	c       *Collection
	opt     ImportOptions
	name    string // of its folder
	spool   *spool
	w       *spoolWriter // nil: nothing has been put yet
	chunk   *chunk       // that is being filled; nil: none
	k       *bulk
	named   int      // labels that are in chunks
	arena   keyArena // of keys
	plain   checked  // scratch
	pledged bool     // it has been committed, by an earlier process
	err     error    // of writing, after which nothing can be put

	// Of its user alone: the database may close it meanwhile.
	rows, bytes uint64 // that have been put or skipped, and what the items take
	ended       bool   // by Commit, Close or Discard

	chunkBytes int   // stagedChunkBytes, but in tests
	oneCommit  int64 // MaxBatchBytes, but in tests
}

// NewImport begins an import into the collection, or goes on with one of the same source
// that was interrupted: Rows says how far it has come. Close or Discard it in the end.
//
// Going on reads what has been staged once. What is damaged of it, and what follows that,
// is forgotten and has to be put again. Staged imports that nothing has been written of
// for a week are removed, of any collection.
//
// An import of the same source that goes on already gives ErrBusy, too little space on disk
// ErrDiskFull, and where damage leaves it open whether the import was committed it is
// ErrCorrupt, unless Restart is set.
func (c *Collection) NewImport(ctx context.Context, opt ImportOptions) (*Import, error) {
	if err := c.changeable(); err != nil {
		return nil, err
	}
	if opt.Source == "" || len(opt.Source) > maxSourceBytes || !utf8.ValidString(opt.Source) {
		return nil, invalid("the source of an import has 1 to %d bytes of UTF-8", maxSourceBytes)
	}
	d := c.db
	if !d.guard.enter() {
		return nil, ErrClosed
	}
	defer d.guard.leave()
	if err := d.log.err(); err != nil { // nobody knows what the last commit was
		return nil, err
	}
	head := importHeader{FDDHDB: "import", Version: importVersion, UUID: d.UUID(), Collection: c.id, Source: opt.Source}
	im := &Import{c: c, opt: opt, name: head.name(), chunkBytes: stagedChunkBytes, oneCommit: MaxBatchBytes}
	if !d.imports.take(im.name, im) {
		return nil, fmt.Errorf("%w: an import into collection %q from the same source goes on", ErrBusy, c.name)
	}
	_, err := d.RemoveStagedImports(ctx, time.Now().Add(-keptImports))
	if err == nil {
		err = im.open(ctx, head)
	}
	if err != nil {
		if im.spool != nil {
			im.spool.close()
		}
		d.imports.leave(im.name)
		return nil, annotate(d.fullDisk(err), "import into collection %q", c.name)
	}
	return im, nil
}

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
		if err := d.admit(2*im.opt.Bytes, false); err != nil {
			return err
		}
		if err := makeDir(fsys, dir); err != nil {
			return err
		}
		if err := head.write(fsys, dir); err != nil {
			return err
		}
	}
	if _, im.pledged, err = readPledge(fsys, dir); err != nil {
		return err
	}
	if err := im.resume(ctx); err != nil {
		return err
	}
	if left := im.opt.Bytes - int64(im.spool.bytes); !im.pledged && found == head {
		return d.admit(im.opt.Bytes+max(left, 0), false)
	}
	return nil
}

// resume reads what has been staged.
func (im *Import) resume(ctx context.Context) error {
	d := im.c.db
	im.k = newBulk(im.c)
	var cv *collectionView
	err := im.c.read(func(_ *view, v *collectionView) error {
		cv = v
		return nil
	})
	if err != nil {
		return err
	}
	im.spool = &spool{
		fs: d.opts.FS, dir: d.importDir(im.name),
		descriptor: cv.descriptor, labels: im.k.labels,
	}
	err = im.spool.resume(ctx, func(h *chunkHeader, parts *[chunkParts][]byte) error { return im.take(cv.descriptor, h, parts) })
	im.named = im.k.labels.count()
	im.rows, im.bytes = im.spool.rows, im.spool.bytes
	return err
}

// take adds the items of a chunk that is read to the columns. An error leaves them as they
// were.
func (im *Import) take(desc *descriptor, h *chunkHeader, parts *[chunkParts][]byte) error {
	bits := 0
	if desc.codesOnly() {
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
	k, first, i := im.k, im.k.n, 0
	var code codec.Code
	if bits > 0 {
		code = codec.NewCode(bits)
	}
	k.register(names)
	return errors.Join(
		h.eachKey(parts[chunkKeys], len(desc.Modalities), func(key []byte) {
			if bits > 0 {
				n := codec.Bytes(bits)
				code.SetBytes(parts[chunkCodes][i*n : (i+1)*n])
			}
			k.add(im.arena.add(string(key)), code)
			i++
		}, func(i, t int) { k.has(t, first+i) }),
		h.eachSkip(parts[chunkSkips], func(row uint64, why string) {
			if im.opt.Skipped != nil {
				im.opt.Skipped(int(h.rows+row), why)
			}
		}))
}

// Rows returns how many rows have been put or skipped, those before an interruption
// included: after NewImport it is how many there are to leave out.
func (im *Import) Rows() int { return int(im.rows) }

// Items returns how many items have been put, those before an interruption included.
func (im *Import) Items() int { return im.k.n }

// Bytes estimates what the items take, as Batch.Bytes does.
func (im *Import) Bytes() int64 { return int64(im.bytes) }

// Put checks an item and stages a copy of it. One that cannot be stored gives ErrInvalid,
// and is no part of the import, which may go on without it. After any other error nothing
// can be put any more; what is staged is kept.
func (im *Import) Put(item *Item) error {
	if item == nil {
		return invalid("no item")
	}
	return im.stage(func(cv *collectionView) error {
		bits := 0
		if cv.codesOnly() {
			bits = cv.Bits
		}
		it := &im.plain
		if cv.isPlain(item) {
			if it.code == nil {
				it.code = codec.NewCode(bits)
			}
			it.key = item.Key
			it.code.SetBytes(item.Code)
		} else {
			var err error
			if it, err = cv.look(item, false); err != nil {
				return err
			}
		}
		it.key = im.arena.add(it.key)
		im.k.register(it.labels)
		var ids []uint32
		if len(it.labels) > 0 {
			ids = im.k.labels.lookup(it.labels)
		}
		im.nameLabels()
		if err := im.chunk.add(it, bits, ids); err != nil {
			return err
		}
		im.k.addColumns(it)
		return nil
	})
}

// Skip counts a row of the source that is no item, so that Rows stays in step with it. Why
// is told to whoever goes on after an interruption, up to 1 KiB of it.
func (im *Import) Skip(why string) error {
	why = strings.ToValidUTF8(why[:min(len(why), maxSkipBytes)], "")
	return im.stage(func(*collectionView) error {
		im.chunk.addSkip(why)
		return nil
	})
}

// RegisterLabels is Batch.RegisterLabels; it comes before the first Put, also where the
// import goes on.
func (im *Import) RegisterLabels(labels []string) error {
	for _, l := range labels {
		if err := checkLabel(l); err != nil {
			return err
		}
	}
	return im.stage(func(*collectionView) error {
		im.k.register(labels)
		im.nameLabels()
		return nil
	})
}

// nameLabels adds labels that are new to the chunk.
func (im *Import) nameLabels() {
	if im.k.labels.count() == im.named {
		return
	}
	for _, name := range im.k.labels.all()[im.named:] {
		im.chunk.addLabel(name)
		im.named++
	}
}

// stage calls f with a chunk to add something to.
func (im *Import) stage(f func(*collectionView) error) error {
	if err := im.usable(); err != nil {
		return err
	}
	if im.pledged {
		return invalid("the import has been committed, as an earlier process ended: Commit says so, Discard forgets it")
	}
	return im.c.read(func(_ *view, cv *collectionView) error {
		if im.err == nil && im.w == nil {
			im.w, im.err = im.spool.newWriter(func(bytes int64) error { return im.c.db.admit(bytes, false) })
		}
		if im.err != nil {
			return im.failure(im.err)
		}
		if im.chunk == nil {
			im.chunk = <-im.w.free
			im.chunk.reset(im.spool.rows, im.spool.items)
		}
		c := im.chunk
		rows, bytes := c.items+c.skips, c.bytes
		if err := f(cv); err != nil {
			return err
		}
		im.rows += uint64(c.items + c.skips - rows)
		im.bytes += c.bytes - bytes
		if c.full(im.chunkBytes) {
			im.flush()
			if im.err = im.w.failed(); im.err != nil {
				return im.failure(im.err)
			}
		}
		return nil
	})
}

func (im *Import) usable() error {
	if im.ended {
		return invalid("the import is closed")
	}
	return nil
}

func (im *Import) failure(err error) error {
	return annotate(im.c.db.fullDisk(err), "stage items of collection %q", im.c.name)
}

// flush hands the chunk to the writer.
func (im *Import) flush() {
	c := im.chunk
	if c == nil {
		return
	}
	im.chunk = nil
	if c.size() == 0 {
		im.w.free <- c
		return
	}
	im.spool.rows += uint64(c.items) + uint64(c.skips)
	im.spool.items += uint64(c.items)
	im.spool.bytes += c.bytes
	im.w.chunks <- c
}

// Commit stores the items that have been put, in one commit, as Batch.Commit does where
// all are new, and as it would item by item otherwise: then they may take MaxBatchBytes, or
// see ImportOptions.InParts. When it returns nil everything is durable and visible, and
// what was staged is gone. With another error than ErrFailed nothing is visible, what is
// staged stays, and Commit can be called again.
//
// Where an earlier process was interrupted after it had committed the import, Rows and
// Items are those of all of it, and Commit only says so: nothing is stored twice.
func (im *Import) Commit(ctx context.Context) error {
	if err := im.usable(); err != nil {
		return err
	}
	d := im.c.db
	if !d.guard.enter() {
		return ErrClosed
	}
	defer d.guard.leave()
	if err := d.log.err(); err != nil {
		return err
	}
	if !im.pledged {
		err := im.settle()
		if err == nil {
			err = im.commit(ctx)
		}
		if err != nil {
			return annotate(d.fullDisk(err), "import into collection %q", im.c.name)
		}
		im.pledged = true
	}
	im.ended = true
	im.shut()
	d.imports.leave(im.name)
	if err := removeImport(d.opts.FS, d.importDir(im.name)); err != nil {
		d.opts.Logger.Warn("what was staged is not removed", "folder", d.importDir(im.name), "error", err)
	}
	return nil
}

// settle makes what has been put durable, and lets it be read.
func (im *Import) settle() error {
	if im.err != nil {
		return im.err
	}
	if im.w == nil {
		return nil
	}
	im.flush()
	if im.err = im.w.sync(); im.err != nil {
		return im.err
	}
	for _, ref := range im.w.written() {
		im.spool.chunks = append(im.spool.chunks, ref)
		im.spool.extras = im.spool.extras || ref.lens[chunkRecords]+ref.lens[chunkVectors] > 0
	}
	return nil
}

func (im *Import) commit(ctx context.Context) error {
	d, k := im.c.db, im.k
	pledge := &pledge{d.opts.FS, im.spool.dir}
	err := im.c.read(func(_ *view, cv *collectionView) error {
		im.spool.descriptor = cv.descriptor // what it may have grown by is in later items
		return nil
	})
	if err != nil {
		return err
	}
	if k.n > 0 {
		k.staged = nil
		if im.spool.extras {
			k.staged = im.spool
		}
		temps := 0
		k.temp = func() (*tempFile, error) {
			temps++
			return newTempFile(d.opts.FS, d.opts.FS.PathJoin(im.spool.dir, fmt.Sprintf("%d.projections", temps)))
		}
		err := k.commit(ctx, im.Bytes(), pledge, im.opt.Progress)
		if !errors.Is(err, errNotBulk) {
			return err
		}
	}
	return im.oneByOne(ctx, pledge)
}

// partBytes is about how much is stored in one of several commits.
const partBytes = 64 << 20

// oneByOne stores the items as a batch does that is no bulk load.
func (im *Import) oneByOne(ctx context.Context, pledge *pledge) error {
	most := im.oneCommit
	inParts := im.Bytes() > most
	if inParts {
		if !im.opt.InParts {
			return invalid("%d bytes of items of which some replace others, or have the same key: at most %d bytes of such can be stored in one commit: split them, or import only new items",
				im.Bytes(), most)
		}
		most = min(most, partBytes)
	}
	b := im.c.db.NewBatch()
	b.single = true
	if names := im.k.labels.all(); len(names) > 0 {
		if err := b.RegisterLabels(im.c, names); err != nil {
			return err
		}
	}
	k := im.k
	err := k.each(ctx, recordPart|vectorPart, 0, k.n, func(i int, it *checked) error {
		if inParts && int64(b.bytes) >= most {
			if err := b.Commit(ctx); err != nil {
				return err
			}
			b = im.c.db.NewBatch()
			b.single = true
			if im.opt.Progress != nil {
				im.opt.Progress("storing", i, k.n)
			}
		}
		own := it.clone()
		k.keyAndCode(i, own)
		b.changes = append(b.changes, &change{collection: im.c.id, kind: putItem, item: own})
		b.bytes += own.bytes()
		return nil
	})
	if err != nil {
		return err
	}
	b.pledge = pledge
	return b.Commit(ctx)
}

// clone returns a copy that shares nothing that may change.
func (it *checked) clone() *checked {
	own := *it
	own.vectors = slices.Clone(it.vectors)
	for t, x := range own.vectors {
		own.vectors[t] = cloneVector(x)
	}
	own.code, own.payload = slices.Clone(it.code), slices.Clone(it.payload)
	own.labels, own.fields = slices.Clone(it.labels), slices.Clone(it.fields)
	return &own
}

// Close ends the import, and keeps what it has staged for another of the same source to go
// on with. After Commit or Discard it does nothing. A database that is closed first does
// this, and gives ErrClosed from then on.
func (im *Import) Close() error {
	if im.ended {
		return nil
	}
	im.ended = true
	d := im.c.db
	if !d.guard.enter() {
		return ErrClosed // which has closed it
	}
	defer d.guard.leave()
	err := im.close()
	return annotate(d.fullDisk(err), "stage items of collection %q", im.c.name)
}

// close makes what is staged durable, and ends it.
func (im *Import) close() error {
	err := im.err
	if im.w != nil && err == nil {
		im.flush()
		err = im.w.sync()
	}
	im.shut()
	im.c.db.imports.leave(im.name)
	return err
}

// Discard ends the import, and forgets what it has staged.
func (im *Import) Discard() error {
	if im.ended {
		return nil
	}
	d := im.c.db
	if !d.guard.enter() {
		return ErrClosed
	}
	defer d.guard.leave()
	im.ended = true
	im.shut()
	err := removeImport(d.opts.FS, d.importDir(im.name))
	d.imports.leave(im.name)
	return annotate(err, "discard an import into collection %q", im.c.name)
}

// shut closes its files.
func (im *Import) shut() {
	if im.w != nil {
		_ = im.w.close() // whoever wants to know of failures has synced
		im.w = nil
	}
	im.spool.close()
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

// openImports are the imports of a database that go on, by the names of their folders.
type openImports struct {
	mu  sync.Mutex
	all map[string]*Import
}

// take notes that somebody works with a folder, unless somebody does already.
func (o *openImports) take(name string, im *Import) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, ok := o.all[name]; ok {
		return false
	}
	if o.all == nil {
		o.all = map[string]*Import{}
	}
	o.all[name] = im
	return true
}

func (o *openImports) leave(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.all, name)
}

func (o *openImports) has(name string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, ok := o.all[name]
	return ok
}

// closeImports closes the imports that go on when the database is closed.
func (d *DB) closeImports() error {
	d.imports.mu.Lock()
	var open []*Import
	for _, im := range d.imports.all {
		open = append(open, im)
	}
	d.imports.mu.Unlock()
	var err error
	for _, im := range open {
		err = errors.Join(err, im.close())
	}
	return err
}
