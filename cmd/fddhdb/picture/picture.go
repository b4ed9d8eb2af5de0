package picture

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
)

// MaxBytes is the size of the largest file that is read.
const MaxBytes = 32 << 20

// headBytes tell formats apart. So many http.DetectContentType looks at.
const headBytes = 512

// A Folder has files of pictures. A nil Folder has none.
type Folder struct {
	root *os.Root
	is   func(head []byte) bool // whether a file that begins so is a picture
}

// OpenFolder opens the folder of --pictures, where files count as pictures that is says are; it gets
// their first 512 bytes. "" gives a nil Folder. The caller closes it.
func OpenFolder(path string, is func(head []byte) bool) (*Folder, error) {
	if path == "" {
		return nil, nil
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, exit.Usagef("--pictures %s: %w", path, unwrapPath(err))
	}
	return &Folder{root, is}, nil
}

// unwrapPath removes the name from an error, as the message has it already.
func unwrapPath(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// Close closes the folder.
func (f *Folder) Close() {
	if f != nil {
		_ = f.root.Close() // nothing was written
	}
}

// Find returns the file of an item's picture, or nil if it has none: that which a string field names,
// the first by name, or the key.
func (f *Folder) Find(it *db.Item) (*File, error) {
	if f == nil {
		return nil, nil
	}
	var values []string
	for _, field := range slices.Sorted(maps.Keys(it.Fields)) {
		if value, is := it.Fields[field].(string); is {
			values = append(values, value)
		}
	}
	for _, value := range append(values, it.Key) {
		for _, name := range filesNamed(value) {
			file, err := f.open(name)
			if file != nil || err != nil {
				return file, err
			}
		}
	}
	return nil, nil
}

// filesNamed returns the files below the folder that a value may name: a path, the path
// of a URL, or the end of either, as the folder may be any folder on that path.
func filesNamed(value string) (files []string) {
	if strings.Contains(value, "://") {
		u, err := url.Parse(value)
		if err != nil {
			return nil
		}
		value = u.Path
	}
	const most = 16 // files to look for
	value = strings.TrimLeft(path.Clean(strings.ReplaceAll(value, `\`, "/")), "/")
	for len(files) < most {
		// A path that is not local names no file below the folder; os.Root would refuse
		// it, too.
		if local := filepath.FromSlash(value); filepath.IsLocal(local) && local != "." {
			files = append(files, local)
		}
		_, rest, more := strings.Cut(value, "/")
		if !more {
			break
		}
		value = rest
	}
	return files
}

// open opens a file, or returns nil if there is none or it is no picture.
func (f *Folder) open(name string) (*File, error) {
	// Opening a pipe could block for ever.
	info, err := f.root.Stat(name)
	if err != nil || !info.Mode().IsRegular() {
		return nil, nil
	}
	file, err := f.root.Open(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, unwrapPath(err))
	}
	head := make([]byte, headBytes)
	n, err := io.ReadFull(file, head)
	if errors.Is(err, io.ErrUnexpectedEOF) || err == io.EOF {
		err = nil
	}
	switch {
	case err != nil:
		err = fmt.Errorf("%s: %w", name, unwrapPath(err))
	case !f.is(head[:n]):
	case info.Size() > MaxBytes:
		err = fmt.Errorf("%s has %s, more than %s", name, term.Size(info.Size()), term.Size(MaxBytes))
	default:
		return &File{name, file, head[:n]}, nil
	}
	_ = file.Close()
	return nil, err
}

// A File is a picture below a folder, which is open. Its reader closes it by Bytes or Close.
type File struct {
	name string
	file *os.File
	head []byte // has been read
}

// Bytes reads the file, at most MaxBytes of it, and closes it.
func (f *File) Bytes() ([]byte, error) {
	defer f.Close()
	rest, err := io.ReadAll(io.LimitReader(f.file, MaxBytes-int64(len(f.head))))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.name, unwrapPath(err))
	}
	return append(f.head, rest...), nil
}

// Close closes the file.
func (f *File) Close() { _ = f.file.Close() }
