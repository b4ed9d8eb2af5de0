package outfile

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/internal/inside"
)

// A Set is the files that a verb makes. They get their names when all of them are
// complete. So a failure leaves nothing half-written, and existing files unchanged.
type Set struct {
	stdout *bufio.Writer // what Stdout means; nil if it is not allowed
	files  []*File
}

// NewSet returns an empty set. The name Stdout means stdout, unless that is nil.
func NewSet(stdout *bufio.Writer) Set { return Set{stdout: stdout} }

// Stdout is the name of standard output among files to write.
const Stdout = "-"

// A File is written to as a bufio.Writer. Its Set completes it.
type File struct {
	*bufio.Writer
	path string   // as it was given
	real string   // the same for all spellings of one file
	f    *os.File // nil for Stdout, which is not closed
	// temporary name; "" for anything but a regular file, such as /dev/stdout, which is written directly
	tmp string
}

// Create starts a file. The caller writes to it and does not close it.
func (o *Set) Create(path string) (*File, error) {
	real, err := path, error(nil)
	if path != Stdout || o.stdout == nil {
		real, err = Path(path)
	}
	if err != nil {
		return nil, err
	}
	for _, other := range o.files {
		if other.real == real {
			return nil, exit.Usagef("%s is to be written twice: give each file a name of its own", path)
		}
	}
	out := &File{path: path, real: real}
	if path == Stdout {
		out.path, out.Writer = "standard output", o.stdout
		o.files = append(o.files, out)
		return out, nil
	}
	if info, statErr := os.Stat(path); statErr == nil && !info.Mode().IsRegular() {
		if info.IsDir() {
			return nil, fmt.Errorf("write %s: is a directory", path)
		}
		out.f, err = os.OpenFile(path, os.O_WRONLY, 0)
	} else {
		// Others could not read a file of os.CreateTemp. An existing file of this name
		// is from a killed process with the same number.
		tmp := filepath.Join(filepath.Dir(real), fmt.Sprintf(".%s.%d.tmp", filepath.Base(real), os.Getpid()))
		_ = os.Remove(tmp)
		if out.f, err = os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666); err == nil {
			out.tmp = tmp
		}
	}
	if err != nil {
		return nil, Error(path, err)
	}
	out.Writer = bufio.NewWriterSize(out.f, 64<<10)
	o.files = append(o.files, out)
	return out, nil
}

// Path returns the path of a file to write, without links. It refuses a path inside a
// database.
func Path(path string) (string, error) {
	if path == Stdout {
		return "", exit.Usagef("%s: this is not written to standard output: name a file, of that name ./%[1]s", path)
	}
	real, err := inside.Real(path)
	if err == nil {
		_, err = os.Stat(filepath.Dir(real))
	}
	if err != nil {
		return "", Error(path, err)
	}
	if dir := inside.Database(filepath.Dir(real)); dir != "" {
		return "", exit.Usagef("%s is inside the database %s: write to another folder", path, dir)
	}
	return real, nil
}

// Commit completes all files and gives them their names.
func (o *Set) Commit() error {
	for _, f := range o.files {
		err := f.Flush()
		if err == nil && f.tmp != "" {
			err = f.f.Sync()
		}
		if f.f != nil {
			if closed := f.f.Close(); err == nil {
				err = closed
			}
			f.f = nil
		}
		if err != nil {
			return Error(f.path, err)
		}
	}
	for _, f := range o.files {
		if f.tmp == "" {
			continue
		}
		if err := os.Rename(f.tmp, f.real); err != nil {
			return Error(f.path, err)
		}
		f.tmp = ""
	}
	return nil
}

// Discard removes incomplete files. After Commit it does nothing.
func (o *Set) Discard() {
	for _, f := range o.files {
		if f.f != nil {
			_ = f.f.Close()
		}
		if f.tmp != "" {
			_ = os.Remove(f.tmp)
		}
	}
}

// Error returns an error with the name that the user has given, not the temporary one.
func Error(path string, err error) error {
	var p *fs.PathError
	var l *os.LinkError
	switch {
	case errors.As(err, &p):
		err = p.Err
	case errors.As(err, &l):
		err = l.Err
	}
	return fmt.Errorf("write %s: %w", path, err)
}
