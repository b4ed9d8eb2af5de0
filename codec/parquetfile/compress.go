package parquetfile

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

// The decompressors of parquet-go make as much room as the data turns out to need, or, if
// it is damaged, without end. These fill what the page says that it needs.

var errInflated = fmt.Errorf("%w: what it says of its length is wrong", errPage)

// inflater decompresses pages.
type inflater struct {
	gzip   *gzip.Reader
	brotli *brotli.Reader
	zstd   *zstd.Decoder
}

// inflate decompresses src to dst, all of it.
func (z *inflater) inflate(dst, src []byte, codec format.CompressionCodec) (err error) {
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
		n, err := snappy.DecodedLen(src)
		if err != nil || n != len(dst) {
			return errInflated
		}
		if _, err := snappy.Decode(dst, src); err != nil {
			return fmt.Errorf("%w: %w", errPage, err)
		}
		return nil
	case format.Lz4Raw:
		n, err := lz4.UncompressBlock(src, dst)
		if err != nil || n != len(dst) {
			return errInflated
		}
		return nil
	case format.Gzip:
		if z.gzip == nil {
			z.gzip, err = gzip.NewReader(bytes.NewReader(src))
		} else {
			err = z.gzip.Reset(bytes.NewReader(src))
		}
		if err != nil {
			z.gzip = nil
			return fmt.Errorf("%w: %w", errPage, err)
		}
		return readExactly(dst, z.gzip)
	case format.Brotli:
		if z.brotli == nil {
			z.brotli = brotli.NewReader(nil)
		}
		if err := z.brotli.Reset(bytes.NewReader(src)); err != nil {
			return err
		}
		return readExactly(dst, z.brotli)
	case format.Zstd:
		if z.zstd == nil {
			// The window is no larger than the page, in what is meant to be read.
			if z.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
				zstd.WithDecoderMaxMemory(maxPage), zstd.WithDecoderMaxWindow(64<<20)); err != nil {
				return err
			}
		}
		if err := z.zstd.Reset(bytes.NewReader(src)); err != nil {
			return fmt.Errorf("%w: %w", errPage, err)
		}
		return readExactly(dst, z.zstd)
	case format.LZO, format.Lz4:
		return fmt.Errorf("is compressed with %v, which is not supported: write it with snappy or zstd", codec)
	}
	return fmt.Errorf("is compressed in a way that is not known, %d", codec)
}

// readExactly fills dst with what r has.
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
	case err != io.EOF: // where it is, the sum of the data has been checked
		return fmt.Errorf("%w: %w", errPage, err)
	}
	return nil
}

func (z *inflater) close() {
	if z.zstd != nil {
		z.zstd.Close()
	}
}
