package picture

import (
	"fmt"
	"io"
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
		return nil, exit.Usagef("--pictures %s: %w", path, Reason(err))
	}
	return &Folder{root, is}, nil
}

// Close closes the folder.
func (f *Folder) Close() {
	if f != nil {
		_ = f.root.Close() // nothing was written
	}
}

// Find returns the name of the file of an item's picture, or "" if it has none: that which a string field
// names, the first by name, or the key.
func (f *Folder) Find(it *db.Item) string {
	if f == nil {
		return ""
	}
	var values []string
	for _, field := range slices.Sorted(maps.Keys(it.Fields)) {
		if value, is := it.Fields[field].(string); is {
			values = append(values, value)
		}
	}
	for _, value := range append(values, it.Key) {
		for _, name := range filesNamed(value) {
			if f.isPicture(name) {
				return name
			}
		}
	}
	return ""
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
	rest := strings.TrimLeft(path.Clean(strings.ReplaceAll(value, `\`, "/")), "/")
	for more := true; more && len(files) < most; _, rest, more = strings.Cut(rest, "/") {
		// A path that is not local names no file below the folder; os.Root would refuse
		// it, too.
		if local := filepath.FromSlash(rest); filepath.IsLocal(local) && local != "." {
			files = append(files, local)
		}
	}
	return files
}

func (f *Folder) isPicture(name string) bool {
	// Opening a pipe could block for ever.
	if info, err := f.root.Stat(name); err != nil || !info.Mode().IsRegular() {
		return false
	}
	file, err := f.root.Open(name)
	if err != nil {
		return false
	}
	defer file.Close()
	head := make([]byte, 512)
	n, _ := io.ReadFull(file, head)
	return f.is(head[:n])
}

// Read returns the bytes of a file that Find has returned, at most MaxBytes of it.
func (f *Folder) Read(name string) ([]byte, error) {
	file, err := f.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, MaxBytes+1))
	if len(data) > MaxBytes {
		err = fmt.Errorf("%s has more than %s", name, term.Size(MaxBytes))
	}
	return data, err
}
