package spool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/internal/store"
)

// After a crash the end of the last file may be anything. Continuing takes the longest sequence of
// chunks that are whole and follow each other, and forgets the rest. The caller is told how many rows
// that makes (Rows) and puts the others again. TestDamageToStagedItems of package db.

// resume takes the staged chunks up to the first that is damaged or does not follow the one
// before it. It removes the files behind that one: otherwise their chunks might follow those of
// the next session.
func (s *Spool) resume(ctx context.Context, o *Options) error {
	fsys, dir := s.folder.FS, s.Dir()
	names, err := fsys.List(dir)
	if err != nil {
		return err
	}
	// Files of sessions have ascending numbers of six digits.
	slices.Sort(names)
	broken, removed := false, false
	for _, name := range names {
		if name == headFile || name == promiseFile {
			continue
		}
		path := fsys.PathJoin(dir, name)
		counts := false
		if strings.HasSuffix(name, chunksSuffix) && !broken {
			if counts, err = s.scan(ctx, &chunkFile{fs: fsys, path: path}, o); err != nil {
				return err
			}
			// Later files follow rows that are not there.
			broken = !counts
		}
		if !counts {
			if err := fsys.Remove(path); err != nil {
				return err
			}
			removed = true
		}
	}
	s.named = s.items.Labels.Count()
	if removed {
		return store.SyncDir(fsys, dir)
	}
	return nil
}

// scan takes the chunks of a file as far as each follows the one before it, and reports whether
// it has taken any.
func (s *Spool) scan(ctx context.Context, f *chunkFile, o *Options) (any bool, err error) {
	size, err := f.size()
	defer func() {
		if !any {
			f.close()
		}
	}()
	if err != nil {
		return false, err
	}
	header := make([]byte, chunkHeaderBytes)
	var parts [chunkParts][]byte
	for at := int64(0); at+chunkHeaderBytes <= size; {
		if ctx.Err() != nil {
			return any, context.Cause(ctx)
		}
		if err := f.readAt(header, at); err != nil {
			return any, err
		}
		h, err := decodeChunkHeader(header)
		// A chunk follows if it begins at the row and item that the chunk before has ended at. A cut
		// file ends in a header or parts that are not all there.
		if err != nil || h.rows != s.rows || h.start != uint64(s.items.Len()) || at+chunkHeaderBytes+h.size() > size {
			break
		}
		ref := chunkRef{h, f, at}
		for part := range parts {
			if err = ref.readPart(part, &parts[part]); err != nil {
				break
			}
		}
		if err == nil {
			err = s.take(&h, &parts, o)
		}
		if errors.Is(err, codec.ErrCorrupt) {
			break // the user stages its rows again, and those that follow
		}
		if err != nil {
			return any, err
		}
		if !any {
			s.files, any = append(s.files, f), true
		}
		s.chunks = append(s.chunks, ref)
		s.rows += uint64(h.items) + uint64(h.skips)
		s.bytes += h.bytes
		at += chunkHeaderBytes + h.size()
	}
	return any, nil
}

// take adds the items of a chunk to the columns. A chunk with an error adds nothing.
func (s *Spool) take(h *chunkHeader, parts *[chunkParts][]byte, o *Options) error {
	codeBytes, modalities := codec.Bytes(s.bits), len(o.Descriptor.Modalities)
	if len(parts[chunkCodes]) != int(h.items)*codeBytes {
		return fmt.Errorf("%w: codes of a chunk", codec.ErrCorrupt)
	}
	// First decode everything, and keep only the labels: an error must come before any change.
	var names []string
	err := h.eachLabel(parts[chunkLabels], func(name string) { names = append(names, name) })
	if err == nil {
		err = h.eachKey(parts[chunkKeys], modalities, func([]byte) {}, func(int, int) {})
	}
	if err == nil {
		err = h.eachSkip(parts[chunkSkips], func(uint64, string) {})
	}
	if err != nil {
		return err
	}
	first, i := s.items.Len(), 0
	var code codec.Code
	if s.bits > 0 {
		code = codec.NewCode(s.bits)
	}
	// Now everything is known to decode: nothing below fails.
	s.items.Register(names)
	return errors.Join(
		h.eachKey(parts[chunkKeys], modalities, func(key []byte) {
			if s.bits > 0 {
				code.SetBytes(parts[chunkCodes][i*codeBytes : (i+1)*codeBytes])
			}
			s.items.AddKey(s.keys.add(string(key)), code)
			i++
		}, func(i, t int) { s.items.SetPresent(t, first+i) }),
		h.eachSkip(parts[chunkSkips], func(row uint64, why string) {
			if o.Skipped != nil {
				o.Skipped(int(h.rows+row), why)
			}
		}))
}
