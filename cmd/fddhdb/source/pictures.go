package source

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/picture"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
)

// aheadOfReader is how many pictures by processor are read or wait to be taken.
const aheadOfReader = 4

// pictureEndings are the endings of file names that an import reads as pictures.
var pictureEndings = []string{".jpg", ".jpeg", ".png", ".gif", ".webp"}

// Pictures is a folder of pictures, with the folders below it. Row i is picture i, by path. Its key is the
// path below the folder, with slashes.
type Pictures struct {
	hashed
	folder string
	files  []found
	fields map[string]bool // those of pictureFields that the collection has

	at     int // the next file
	queue  []chan hashedPicture
	asked  int // the next file to be read
	free   chan struct{}
	closed chan struct{}
	work   sync.WaitGroup
}

// A found file is one that looks like a picture by its name.
type found struct {
	path string // below the folder
	info fs.FileInfo
	err  error // the file, or a folder, cannot be read
}

// A hashedPicture has the code and the fields of a picture, or the reason why there is no code.
type hashedPicture struct {
	code   []byte
	fields map[string]any
	err    error
}

// OpenPictures finds the pictures in a folder. "" is the hash of the collection.
func OpenPictures(folder, hash string) (*Pictures, error) {
	s := &Pictures{hashed: hashed{flag: "--pictures", given: hash, usual: "pdq"}, folder: folder,
		free: make(chan struct{}, runtime.GOMAXPROCS(0)), closed: make(chan struct{})}
	if err := s.choose(); err != nil {
		return nil, err
	}
	if info, err := os.Stat(folder); err != nil {
		return nil, fmt.Errorf("--pictures: %w", err)
	} else if !info.IsDir() {
		return nil, exit.Usagef("--pictures %s: it is a file; a folder is expected", folder)
	}
	// A link is followed to the folder itself, and to no other.
	root, err := filepath.EvalSymlinks(folder)
	if err == nil {
		err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if path == root && err != nil {
				return err
			}
			if err == nil && (entry.IsDir() || !slices.Contains(pictureEndings,
				strings.ToLower(filepath.Ext(path)))) {
				return nil
			}
			f := found{err: err}
			if f.path, err = filepath.Rel(root, path); err == nil && f.err == nil {
				f.info, f.err = os.Stat(path)
			}
			if f.err == nil && f.info.IsDir() { // a link to a folder
				return err
			}
			s.files = append(s.files, f)
			return err
		})
	}
	slices.SortFunc(s.files, func(a, b found) int { return strings.Compare(a.path, b.path) })
	if err == nil && len(s.files) == 0 {
		err = exit.Failedf("--pictures %s: there is no %s in it", folder, strings.Join(pictureEndings, ", "))
	}
	return s, err
}

// Path implements Source, as do Rows, Close and next.
func (s *Pictures) Path() string { return s.folder }
func (s *Pictures) Rows() int    { return len(s.files) }

func (s *Pictures) Close() error {
	close(s.closed)
	s.work.Wait()
	return nil
}

// Skip leaves out the next n pictures.
func (s *Pictures) Skip(_ context.Context, n int) error {
	s.at += n
	s.asked = max(s.asked, s.at)
	return nil
}

// Name returns the path of a picture.
func (s *Pictures) Name(row int) string { return filepath.ToSlash(s.files[row].path) }

// Stamp writes what changes when the folder does: paths, sizes and times of modification.
func (s *Pictures) Stamp(w io.Writer) {
	for _, f := range s.files {
		if f.info != nil {
			fmt.Fprintf(w, "%q %d %d\n", f.path, f.info.Size(), f.info.ModTime().UnixNano())
		}
	}
}

// pictureFields are the fields of pictures. Quality is of hashes that tell it.
var pictureFields = []string{"width", "height", "bytes", "quality"}

// Schema returns the schema of a collection for the pictures.
func (s *Pictures) Schema() (db.Schema, error) {
	out := s.hashed.schema()
	for _, name := range pictureFields {
		if name != "quality" || s.hash.Name == "pdq" {
			out.Fields = append(out.Fields, db.Field{Name: name, Type: db.Int})
		}
	}
	return out, nil
}

// Check takes the schema of the collection. Fields of pictures that it lacks, or has of another type, are
// left out.
func (s *Pictures) Check(c api.Collection, schema db.Schema) error {
	s.fields = map[string]bool{}
	for _, f := range schema.Fields {
		s.fields[f.Name] = f.Type == db.Int
	}
	return s.hashed.check(c, schema)
}

func (s *Pictures) next(item *db.Item) error {
	if s.at == len(s.files) {
		return io.EOF
	}
	for ; s.asked < len(s.files) && len(s.queue) < aheadOfReader*cap(s.free); s.asked++ {
		answer := make(chan hashedPicture, 1)
		s.queue = append(s.queue, answer)
		f := s.files[s.asked]
		s.work.Go(func() {
			select {
			case s.free <- struct{}{}:
				answer <- s.read(f)
				<-s.free
			case <-s.closed:
			}
		})
	}
	p := <-s.queue[0]
	s.queue = s.queue[1:]
	item.Key, item.Code, item.Fields = s.Name(s.at), p.code, p.fields
	s.at++
	if p.err != nil {
		return &RowError{fmt.Errorf("%q: %w", item.Key, p.err)}
	}
	return nil
}

// read hashes a picture.
func (s *Pictures) read(f found) (p hashedPicture) {
	if f.err != nil {
		p.err = picture.Reason(f.err)
		return p
	}
	m, size, err := picture.ReadFile(filepath.Join(s.folder, f.path))
	if err != nil {
		p.err = err
		return p
	}
	var quality int
	p.code, quality = s.hash.OfPicture(m)
	p.fields = map[string]any{}
	for name, value := range map[string]int64{"width": int64(m.Bounds().Dx()),
		"height": int64(m.Bounds().Dy()), "bytes": size, "quality": int64(quality)} {
		if s.fields[name] && value >= 0 {
			p.fields[name] = value
		}
	}
	return p
}
