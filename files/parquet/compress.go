package parquet

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/format"
	"github.com/pierrec/lz4/v4"
)

// The decompressors of parquet-go allocate as much as the data asks for, and a damaged LZ4 page makes them
// allocate without end. So pages are decompressed here, into as many bytes as their headers say. Any other
// number of bytes is an error.

var errInflated = fmt.Errorf("%w: what it says of its length is wrong", errPage)

// inflater decompresses pages. It belongs to one reader.
type inflater struct {
	streams map[format.CompressionCodec]resetter // decompressors, reused by the next page
}

// resetter is a decompressor that reads a stream.
type resetter interface {
	io.Reader
	Reset(io.Reader) error
}

// inflate decompresses all of src to dst, which it must fill exactly.
func (z *inflater) inflate(dst, src []byte, codec format.CompressionCodec) error {
	if len(dst) == 0 {
		return nil
	}
	switch codec {
	case format.Uncompressed:
		if len(src) != len(dst) {
			return errInflated
		}
		copy(dst, src)
		return nil
	case format.Snappy:
		if n, err := snappy.DecodedLen(src); err != nil || n != len(dst) {
			return errInflated
		}
		if _, err := snappy.Decode(dst, src); err != nil {
			return fmt.Errorf("%w: %w", errPage, err)
		}
		return nil
	case format.Lz4Raw:
		if n, err := lz4.UncompressBlock(src, dst); err != nil || n != len(dst) {
			return errInflated
		}
		return nil
	case format.LZO, format.Lz4:
		return fmt.Errorf("is compressed with %v, which is not supported: write it with snappy or zstd",
			codec)
	}
	r, err := z.stream(codec)
	if err != nil {
		return err
	}
	if err := r.Reset(bytes.NewReader(src)); err != nil {
		return fmt.Errorf("%w: %w", errPage, err)
	}
	return readExactly(dst, r)
}

// stream returns the decompressor of a codec.
func (z *inflater) stream(codec format.CompressionCodec) (r resetter, err error) {
	if r := z.streams[codec]; r != nil {
		return r, nil
	}
	switch codec {
	case format.Gzip:
		r = new(gzip.Reader)
	case format.Brotli:
		r = brotli.NewReader(nil)
	case format.Zstd:
		// In valid files the window is no larger than the page.
		if r, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxMemory(maxPage), zstd.WithDecoderMaxWindow(64<<20)); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("is compressed in a way that is not known, %d", codec)
	}
	if z.streams == nil {
		z.streams = map[format.CompressionCodec]resetter{}
	}
	z.streams[codec] = r
	return r, nil
}

// readExactly fills dst from r. It fails if r does not end there.
func readExactly(dst []byte, r io.Reader) error {
	if _, err := io.ReadFull(r, dst); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return errInflated
		}
		return fmt.Errorf("%w: %w", errPage, err)
	}
	var more [1]byte
	switch n, err := io.ReadFull(r, more[:]); {
	case n > 0:
		return errInflated
	case err != io.EOF: // at io.EOF the checksum of the stream has been verified
		return fmt.Errorf("%w: %w", errPage, err)
	}
	return nil
}

func (z *inflater) close() {
	if d, ok := z.streams[format.Zstd].(*zstd.Decoder); ok {
		d.Close()
	}
}
