package spool

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/bulk"
	"github.com/fddhdb/fddhdb/db/internal/record"
)

// A chunkFile is a file of chunks. Goroutines may read it at the same time.
type chunkFile struct {
	fs   vfs.FS
	path string

	mu   sync.Mutex
	file vfs.File // open for reading; nil: nobody has read yet, or it is closed
}

// open opens the file at the first call.
func (f *chunkFile) open() (vfs.File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file == nil {
		file, err := f.fs.Open(f.path)
		if err != nil {
			return nil, err
		}
		f.file = file
	}
	return f.file, nil
}

// close closes the file if it is open. Nobody reads any more.
func (f *chunkFile) close() {
	if f.file != nil {
		_ = f.file.Close() // it was only read
		f.file = nil
	}
}

// size returns the length of the file.
func (f *chunkFile) size() (int64, error) {
	file, err := f.open()
	if err != nil {
		return 0, err
	}
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// readAt fills b with the bytes from at on.
func (f *chunkFile) readAt(b []byte, at int64) error {
	if len(b) == 0 {
		return nil
	}
	file, err := f.open()
	if err != nil {
		return err
	}
	if _, err = file.ReadAt(b, at); err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// A chunkRef is a chunk in a file.
type chunkRef struct {
	chunkHeader
	file *chunkFile
	at   int64 // where the header begins
}

// readPart reads a part of the chunk into buf.
func (r *chunkRef) readPart(part int, buf *[]byte) error {
	n := int(r.lens[part])
	*buf = slices.Grow((*buf)[:0], n)[:n]
	if err := r.file.readAt(*buf, r.at+r.offset(part)); err != nil {
		return err
	}
	return r.sound(part, *buf)
}

// extras are the items of a spool with what they have besides key and code, for columns. A
// chunk is a block.
type extras struct {
	spool      *Spool
	descriptor *record.Descriptor
}

func (x *extras) Blocks() int { return len(x.spool.chunks) }

func (x *extras) BlockOf(i int) int {
	chunks := x.spool.chunks
	return sort.Search(len(chunks), func(j int) bool { return chunks[j].start > uint64(i) }) - 1
}

func (x *extras) NewReader() bulk.Reader { return &reader{of: x} }

// A reader reads items of a spool into its own memory. It belongs to one goroutine.
type reader struct {
	of  *extras
	buf itemBuffer
}

func (r *reader) Read(block int, parts bulk.Parts) (from int, items []*record.Item, err error) {
	x, buf := r.of, &r.buf
	ref := &x.spool.chunks[block]
	items = buf.prepare(int(ref.items))
	part := func(p int) ([]byte, error) {
		err := ref.readPart(p, &buf.parts[p])
		return buf.parts[p], err
	}
	var b []byte
	if parts&bulk.RecordPart != 0 && ref.lens[chunkRecords] > 0 {
		if b, err = part(chunkRecords); err == nil {
			err = ref.decodeRecords(b, x.descriptor, x.spool.items.Labels.Name, items)
		}
	}
	if err == nil && parts&bulk.VectorPart != 0 && ref.lens[chunkVectors] > 0 {
		if b, err = part(chunkVectors); err == nil {
			err = ref.decodeVectors(b, x.descriptor, items, buf)
		}
	}
	if err != nil {
		return 0, nil, x.unreadable(err)
	}
	return int(ref.start), items, nil
}

// unreadable words the error of a chunk that cannot be read.
func (x *extras) unreadable(err error) error {
	if errors.Is(err, codec.ErrCorrupt) {
		return &damage{fault.CorruptionError{What: x.spool.Dir() + ": nothing of it is stored: begin the import again, which stages the damaged ones anew", Err: err}}
	}
	return fmt.Errorf("fddhdb: read staged items: %w", err)
}

// A damage is an ErrStaged.
type damage struct{ fault.CorruptionError }

func (e *damage) Error() string {
	return fmt.Sprintf("%v: %s: %v", fault.ErrStaged, e.What, e.Err)
}

func (e *damage) Is(target error) bool {
	return target == fault.ErrStaged || target == fault.ErrCorrupt
}
