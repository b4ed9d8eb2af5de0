package backup

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"sync"
)

// errMissing is about a missing object. It is an ErrDamaged.
var errMissing = fmt.Errorf("%w: an object is missing", ErrDamaged)

// buffers hold pieces.
var buffers = sync.Pool{New: func() any { b := make([]byte, 0, pieceBytes); return &b }}

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
	b := (*buf)[:size]
	n, err := io.ReadFull(r, b)
	if err == nil && n == size { // there must be no further byte
		var more [1]byte
		if k, _ := io.ReadFull(r, more[:]); k > 0 {
			err = damaged("%s: more than %d bytes", p.object(), size)
		}
	}
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = nil
	}
	if err = errors.Join(err, r.Close()); err != nil {
		return 0, err
	}
	b, stored = b[:n], int64(n)
	if len(b) != size {
		return stored, damaged("%s: %d bytes of a piece of %d", p.object(), len(b), size)
	}
	if sum(b) != p.Hash() {
		return stored, damaged("%s: its SHA-256 is another one", p.object())
	}
	return stored, use(b)
}
