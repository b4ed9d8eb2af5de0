package backup

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// maxStored bounds an object: a compressed one is stored only if it is smaller.
const maxStored = pieceBytes

// Coders take tens of megabytes each. The garbage collector frees them between backups:
// a program that embeds the database makes one a day.
var (
	encoders = sync.Pool{New: func() any {
		e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(8<<20))
		return &coder[*zstd.Encoder]{e, err}
	}}
	// Hostile input cannot take more memory than the bytes of a piece.
	decoders = sync.Pool{New: func() any {
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(pieceBytes), zstd.WithDecoderMaxWindow(pieceBytes))
		return &coder[*zstd.Decoder]{d, err}
	}}
)

type coder[T any] struct {
	c   T
	err error
}

// errMissing is about a missing object. It is an ErrDamaged.
var errMissing = fmt.Errorf("%w: an object is missing", ErrDamaged)

// buffers hold pieces, plain or as stored.
var buffers = sync.Pool{New: func() any { b := make([]byte, 0, pieceBytes); return &b }}

// compress returns b compressed into dst, or nil if that saves too little.
func compress(dst, b []byte) ([]byte, error) {
	e := encoders.Get().(*coder[*zstd.Encoder])
	if e.err != nil {
		return nil, e.err
	}
	defer encoders.Put(e)
	dst = e.c.EncodeAll(b, dst[:0])
	if len(dst) > len(b)-len(b)/16 {
		return nil, nil
	}
	return dst, nil
}

func sum(b []byte) Hash { return sha256.Sum256(b) }

// readPiece reads a piece of size bytes, verifies it against its name, and passes it to
// use. It returns the number of stored bytes. Damage is an ErrDamaged.
func readPiece(ctx context.Context, s Store, p Piece, size int, use func([]byte) error) (stored int64, err error) {
	r, err := s.Get(ctx, p.object())
	if notThere(err) {
		return 0, fmt.Errorf("%w: %s", errMissing, p.object())
	}
	if err != nil {
		return 0, err
	}
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	most := size
	if p.compressed() {
		most = maxStored
	}
	b := (*buf)[:most]
	n, err := io.ReadFull(r, b)
	if err == nil && n == most { // there must be no further byte
		var more [1]byte
		if k, _ := io.ReadFull(r, more[:]); k > 0 {
			err = damaged("%s: more than %d bytes", p.object(), most)
		}
	}
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = nil
	}
	if err = errors.Join(err, r.Close()); err != nil {
		return 0, err
	}
	b, stored = b[:n], int64(n)
	if p.compressed() {
		d := decoders.Get().(*coder[*zstd.Decoder])
		if d.err != nil {
			return stored, d.err
		}
		defer decoders.Put(d)
		plain := buffers.Get().(*[]byte)
		defer buffers.Put(plain)
		if b, err = d.c.DecodeAll(b, (*plain)[:0]); err != nil {
			return stored, damaged("%s: %w", p.object(), err)
		}
	}
	if len(b) != size {
		return stored, damaged("%s: %d bytes of a piece of %d", p.object(), len(b), size)
	}
	if sum(b) != p.Hash() {
		return stored, damaged("%s: its SHA-256 is another one", p.object())
	}
	return stored, use(b)
}
