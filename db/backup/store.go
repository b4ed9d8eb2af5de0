package backup

import (
	"context"
	"io"
	"time"
)

// A Store is where a repository of backups is kept: a flat set of objects, each a name
// and bytes. Folder makes one of a folder, package db/s3 one of a bucket; to keep
// backups elsewhere, implement these four methods, and run the tests of package
// storetest on them.
//
// Names are lower-case letters, digits, '-', '.' and '/', at most 200 bytes, and do not
// begin or end with '/' nor have an element that is empty, begins or ends with '.', or is
// the name of a device of Windows such as nul or com1.txt. No two objects have names of
// which one goes on from the other with a slash, a and a/b: a store may keep objects as
// files in folders. It may be used by several goroutines, and by several processes on
// several machines.
//
// What is promised to a repository rests on this:
//
//   - Put is atomic and durable: when it has returned nil, Get and List of anybody find
//     the whole object, also after a crash; before, and where it fails or its process is
//     killed, they find what was there before it.
//   - List finds every object that was there when it was called, and is still there when
//     it returns.
//   - List finds what Get opens, and nothing else. Where a store cannot tell whether an
//     object is there, both fail, and not with fs.ErrNotExist: what is not found counts as
//     deleted, and a Prune deletes what no manifest that is found needs.
//
// Methods return promptly, with its error, when the context ends. Temporary failures of
// a network are theirs to retry; an error that they return ends the backup.
type Store interface {
	// Put stores size bytes of r under the name, in place of what was there. r stands
	// at their beginning, and may be read again from there for another try.
	Put(ctx context.Context, name string, r io.ReadSeeker, size int64) error

	// Get opens an object for reading from its beginning; the caller closes it. Where
	// there is none, the error wraps fs.ErrNotExist.
	Get(ctx context.Context, name string) (io.ReadCloser, error)

	// List calls f for each object whose name begins with prefix, in any order, and ends
	// with the error of f, if that is one.
	List(ctx context.Context, prefix string, f func(Object) error) error

	// Delete deletes an object; where there is none it does nothing.
	Delete(ctx context.Context, name string) error
}

// An Object is what List tells of one.
type Object struct {
	Name     string
	Size     int64     // in bytes
	Modified time.Time // when it was last put, by the clock of the store
}
