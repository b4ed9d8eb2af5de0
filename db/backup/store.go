package backup

import (
	"context"
	"io"
	"time"
)

// A Store holds a repository of backups: a flat set of objects, each with a name and
// bytes. Folder makes a store of a folder, and package db/s3 one of a bucket. To keep
// backups elsewhere, implement these four methods, and run the tests of package
// storetest on them.
//
// Names consist of lower-case letters, digits, '-', '.' and '/', at most 200 bytes.
// They do not begin or end with '/'. None of their elements is empty, begins or ends
// with '.', or is the name of a device of Windows such as nul or com1.txt. No name is a
// folder of another name, such as a and a/b: a store may keep objects as files in
// folders. Several goroutines, and several processes on several machines, may use it.
//
// The promises of a repository rest on this:
//
//   - Put is atomic and durable. When it has returned nil, Get and List of anyone find
//     the whole object, also after a crash. Before that, and if it fails or its process
//     is killed, they find the earlier object.
//   - List finds every object that was there when it was called and is still there when
//     it returns.
//   - List finds the same objects as Get, and nothing else. If a store cannot tell
//     whether an object is there, both fail, and not with fs.ErrNotExist: an object
//     that is not found counts as deleted, and a Prune deletes objects that no manifest
//     needs.
//
// When the context ends, methods return promptly with its error. They retry temporary
// failures of a network themselves; an error that they return ends the backup.
type Store interface {
	// Put stores size bytes of r under the name, and replaces an earlier object. r
	// stands at the first of them; Put may go back there to try again.
	Put(ctx context.Context, name string, r io.ReadSeeker, size int64) error

	// Get opens an object for reading from its beginning. The caller closes it. If
	// there is no such object the error wraps fs.ErrNotExist.
	Get(ctx context.Context, name string) (io.ReadCloser, error)

	// List calls f for each object whose name begins with prefix, in any order. An
	// error of f ends List, which returns it.
	List(ctx context.Context, prefix string, f func(Object) error) error

	// Delete deletes an object. If there is no such object it does nothing.
	Delete(ctx context.Context, name string) error
}

// An Object describes an object, for List.
type Object struct {
	Name     string
	Size     int64     // in bytes
	Modified time.Time // time of the last Put, by the clock of the store
}
