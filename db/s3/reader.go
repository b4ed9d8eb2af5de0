package s3

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/minio/minio-go/v7"
)

// A reader reads an object. If the connection is cut it reads the rest over another
// one. It belongs to one goroutine.
type reader struct {
	s    *Store
	ctx  context.Context
	name string

	body   io.ReadCloser // nil: there is no connection
	at     int64         // bytes that have been read
	size   int64         // of the object; -1: unknown
	etag   string        // of the object that was opened first
	failed error         // the final error
}

// open makes a connection that begins at position at.
func (r *reader) open() error {
	var o minio.GetObjectOptions
	if r.at > 0 {
		if err := errors.Join(o.SetRange(r.at, 0), o.SetMatchETag(r.etag)); err != nil {
			return err
		}
	}
	body, info, _, err := minio.Core{Client: r.s.client}.GetObject(r.ctx, r.s.o.Bucket, r.s.key(r.name), o)
	if err != nil {
		return err
	}
	if r.at == 0 {
		r.size, r.etag = info.Size, info.ETag
	} else if info.Size != r.size-r.at || info.ETag != r.etag {
		_ = body.Close()
		return fmt.Errorf("the server does not go on at byte %d", r.at)
	}
	r.body = body
	return nil
}

// Read implements io.Reader.
func (r *reader) Read(p []byte) (int, error) {
	for try := 1; ; try++ {
		if r.failed != nil {
			return 0, r.failed
		}
		n, err := r.read(p)
		if n > 0 || err == nil {
			return n, nil
		}
		if err == io.EOF && (r.size < 0 || r.at == r.size) {
			r.failed = io.EOF
			continue
		}
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		// If its size or identity is unknown, an object cannot be read on elsewhere.
		if r.size < 0 || r.etag == "" || try == r.s.o.Tries || r.ctx.Err() != nil {
			r.failed = r.s.failed(r.ctx, "read "+r.name, err)
			continue
		}
		if err := r.open(); err != nil {
			r.failed = r.s.failed(r.ctx, "read on "+r.name, err)
		}
	}
}

// read reads from the connection, and closes it after an error.
func (r *reader) read(p []byte) (int, error) {
	if r.body == nil {
		return 0, io.ErrUnexpectedEOF
	}
	n, err := r.body.Read(p)
	r.at += int64(n)
	if err != nil && n == 0 {
		_ = r.Close()
	}
	return n, err
}

// Close implements io.Closer.
func (r *reader) Close() error {
	if r.body == nil {
		return nil
	}
	err := r.body.Close()
	r.body = nil
	return err
}
