package matrix

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// MaxUnpacked is the most bytes that a small compressed file may hold. A larger one may hold MaxExpansion
// times its size.
var MaxUnpacked int64 = 1 << 30 // tests lower it

// MaxExpansion is the largest expansion of a compressed file. Numbers and text seldom shrink to less than a
// hundredth.
const MaxExpansion = 200

// maxWindow bounds the memory of a decompressor: zstd --ultra -22 takes as much.
const maxWindow = 128 << 20

// Inner cuts .gz or .zst from the name of a compressed file. packed says whether there was one.
func Inner(path string) (inner string, packed bool) {
	switch ext := filepath.Ext(path); strings.ToLower(ext) {
	case ".gz", ".zst":
		return strings.TrimSuffix(path, ext), true
	}
	return path, false
}

// unpack decompresses a file to a temporary one, as files are read more than once, and closes the former.
func unpack(path string, packed Source) (_ Source, err error) {
	defer packed.Close()
	var r io.Reader
	if strings.EqualFold(filepath.Ext(path), ".gz") {
		r, err = gzip.NewReader(packed.Reader())
	} else {
		var z *zstd.Decoder
		if z, err = zstd.NewReader(packed.Reader(), zstd.WithDecoderConcurrency(1),
			zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(maxWindow),
			zstd.WithDecoderMaxWindow(maxWindow)); err == nil {
			defer z.Close()
		}
		r = z
	}
	if err == nil && packed.Size == 0 { // zstd takes it for no data
		err = io.EOF
	}
	if err != nil {
		return Source{}, packed.unpackError(err)
	}
	f, err := os.CreateTemp("", "fddhdb-unpacked-")
	if err != nil {
		return Source{}, packed.Fail("decompress: %w", err)
	}
	tmp := Removed{f}
	// Where an open file can be removed, nothing of it stays, however the process ends.
	_ = os.Remove(f.Name())
	most := max(MaxUnpacked, MaxExpansion*packed.Size)
	n, err := io.Copy(f, io.LimitReader(r, most+1))
	var full *fs.PathError
	switch {
	case errors.As(err, &full) && full.Path == f.Name():
		err = packed.Fail("cannot be decompressed into %s, which TMPDIR may replace: %v", os.TempDir(), full.Err)
	case err != nil:
		err = packed.unpackError(err)
	case n > most:
		err = packed.Fail("%s bytes expand to more than %s: if they are meant to, decompress the file first",
			Thousands(packed.Size), Thousands(most))
	}
	if err != nil {
		return Source{}, cmp.Or(err, tmp.Close())
	}
	return Source{Name: packed.Name, ReaderAt: f, Size: n, Closer: tmp}, nil
}

func (s Source) unpackError(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("the file is truncated")
	}
	return s.Fail("cannot be decompressed: %w", err)
}

// Removed is a temporary file that is removed on Close.
type Removed struct{ File *os.File }

// Close closes and removes the file.
func (r Removed) Close() error {
	err := os.Remove(r.File.Name())
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	closed := r.File.Close()
	if err != nil && closed == nil { // an open file stays on some systems
		err = os.Remove(r.File.Name())
	}
	return errors.Join(closed, err)
}
