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

// A Set is files that a verb makes. They get their names when all of them are
// complete, so that a failure leaves nothing half-written and what was there
// before as it was.
type Set struct {
	stdout *bufio.Writer // that Stdout stands for, nil where that cannot be
	files  []*File
}

// NewSet returns files of which one may be standard output, by the name Stdout.
func NewSet(stdout *bufio.Writer) Set { return Set{stdout: stdout} }

// Stdout is the name of standard output among files that are written.
const Stdout = "-"

// A File is written to as a bufio.Writer. Its Set completes it.
type File struct {
	*bufio.Writer
	path string   // as it was given
	real string   // one for each file, however it is spelt
	f    *os.File // nil for Stdout, which is not closed
	tmp  string   // "" for what is no regular file, such as /dev/stdout: it is written to as it is
}

// Seekable returns the file itself, for formats whose head is written last; nil for what is
// no regular file.
func (f *File) Seekable() *os.File {
	if f.tmp == "" {
		return nil
	}
	return f.f
}

// Create starts a file. It must not be closed by who writes to it.
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
		// Not os.CreateTemp, whose files nobody else may read. One that is there is of a
		// process of the same number that was killed.
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

// Path returns the path, without links, of a file that is to be written, which no
// database may hold.
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

// Discard removes what is not complete. After commit it does nothing.
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

// Error names the file that the user asked for rather than the temporary one.
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
