package source

import (
	"context"
	"errors"
	"fmt"
	"image"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/encoder"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/picture"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
	"github.com/fddhdb/fddhdb/internal/rows"
)

// How far a folder is read ahead.
const (
	aheadOfReader   = 4  // pictures by processor that are read or wait to be taken
	encodedTogether = 16 // pictures that an encoder gets at once
)

// pictureEndings are the endings of file names that an import reads as pictures.
var pictureEndings = []string{".jpg", ".jpeg", ".png", ".gif", ".webp"}

// IsPicture reports whether a file is one of a picture by its name.
func IsPicture(path string) bool {
	return slices.Contains(pictureEndings, strings.ToLower(filepath.Ext(path)))
}

// A PictureEncoder makes the vectors of a modality of pictures: by OfPicture, or else by Encode from paths of
// files.
type PictureEncoder struct {
	Modality  string
	OfPicture func(image.Image) []float32
	Encode    func(ctx context.Context, files []string) (all []encoder.Vector, refused []error, err error)
	Close     func() // nil: there is nothing to close
}

// PictureOptions say what becomes of the pictures in a folder.
type PictureOptions struct {
	Folder     string
	Hash       string // makes codes; "": the hash of the collection
	Labels     bool   // the folders on the path of a picture are its labels
	Thumbnails bool   // the payload of an item is a small picture

	// Modality describes the vectors of a new collection. Without a name the collection gets codes.
	Modality db.Modality
	Encoders []db.Encoder // of a new collection

	// Open returns the encoders of pictures of a collection.
	Open func(schema db.Schema) ([]PictureEncoder, error)
}

// Pictures is a folder of pictures, with the folders below it. Row i is picture i, by path. Its key is the
// path below the folder, with slashes.
type Pictures struct {
	hashed
	PictureOptions
	root     string // of the files
	files    []found
	others   []string // folders whose pictures keep their keys
	unread   []string // folders that could not be read, as the beginnings of keys
	encoders []PictureEncoder
	schema   db.Schema
	stored   func(key string) (*db.Item, error)
	encode   func(e PictureEncoder, files []string) ([]encoder.Vector, []error, error)

	at     int // the next file
	queue  []chan *madePicture
	made   []*madePicture // the first files of the queue, with vectors
	asked  int            // the next file to be read
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

// A madePicture is what becomes of a picture, or the reason why nothing does.
type madePicture struct {
	key     string
	file    string
	code    []byte
	labels  []string
	fields  map[string]any
	payload []byte
	vectors map[string][]float32
	sparse  map[string]db.Sparse
	err     error
}

// OpenPictures finds the pictures in a folder.
func OpenPictures(o PictureOptions) (*Pictures, error) {
	s := &Pictures{PictureOptions: o, hashed: hashed{flag: "--pictures", given: o.Hash},
		free: make(chan struct{}, runtime.GOMAXPROCS(0)), closed: make(chan struct{})}
	if o.Hash != "" {
		if err := s.choose(o.Hash); err != nil {
			return nil, err
		}
	}
	if info, err := os.Stat(o.Folder); err != nil {
		return nil, fmt.Errorf("--pictures: %w", err)
	} else if !info.IsDir() {
		return nil, exit.Usagef("--pictures %s: it is a file; a folder is expected", o.Folder)
	}
	// A link is followed to the folder itself, and to no other.
	root, err := filepath.EvalSymlinks(o.Folder)
	if err == nil {
		s.root, err = filepath.Abs(root) // an encoder runs in another folder
	}
	if err == nil {
		err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if path == root && err != nil {
				return err
			}
			if path != root && madeByOthers(filepath.Base(path)) {
				if err == nil && entry.IsDir() {
					return fs.SkipDir
				}
				return nil
			}
			if err == nil && (entry.IsDir() || !IsPicture(path)) {
				return nil
			}
			f := found{err: err}
			if f.path, err = filepath.Rel(root, path); err == nil && f.err == nil {
				f.info, f.err = os.Stat(path)
			} else if f.err != nil {
				s.unread = append(s.unread, keyOf(f.path)+"/")
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
		err = exit.Failedf("--pictures %s: there is no %s in it", o.Folder, strings.Join(pictureEndings, ", "))
	}
	return s, err
}

// madeByOthers reports whether a file or folder is hidden, or has the name that systems of storage give to
// what they make beside pictures: a file ._a.jpg ends like a picture and is none.
func madeByOthers(name string) bool {
	return strings.HasPrefix(name, ".") || name == "@eaDir" || name == "#recycle" || name == "lost+found"
}

// Spare keeps the pictures that the collection has of other folders: a picture of the same name is refused.
func (s *Pictures) Spare(folders []string) { s.others = folders }

// Root returns the absolute path of the folder, without links.
func (s *Pictures) Root() string { return s.root }

// Path implements rows.Source, as do Rows, Close and Next.
func (s *Pictures) Path() string { return s.Folder }
func (s *Pictures) Rows() int    { return len(s.files) }

func (s *Pictures) Close() error {
	close(s.closed)
	s.work.Wait()
	s.closeEncoders()
	return nil
}

func (s *Pictures) closeEncoders() {
	for _, e := range s.encoders {
		if e.Close != nil {
			e.Close()
		}
	}
}

// Skip leaves out the next n pictures.
func (s *Pictures) Skip(_ context.Context, n int) error {
	s.at += n
	s.asked = max(s.asked, s.at)
	return nil
}

// Name returns the key of a picture.
func (s *Pictures) Name(row int) string { return keyOf(s.files[row].path) }

func keyOf(path string) string { return filepath.ToSlash(path) }

// Gone returns the keys of pictures of a collection that have no file in the folder, and how many items have
// one. Without a file an item is a picture if an import gave it its fields. The pictures below a folder that
// cannot be read are in neither number.
func (s *Pictures) Gone(ctx context.Context, c api.Collection) (gone []string, there int, err error) {
	files := make(map[string]bool, len(s.files))
	for row := range s.files {
		files[s.Name(row)] = true
	}
	for key, err := range c.Keys(ctx, "") {
		if err != nil {
			return nil, 0, err
		}
		if files[key] {
			there++
			continue
		}
		if slices.ContainsFunc(s.unread, func(folder string) bool { return strings.HasPrefix(key, folder) }) {
			continue
		}
		it, err := c.Get(ctx, key)
		if errors.Is(err, db.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, 0, err
		}
		_, modified := it.Fields["modified"].(time.Time)
		if _, bytes := it.Fields["bytes"].(int64); modified && bytes {
			gone = append(gone, key)
		}
	}
	return gone, there, nil
}

// pictureFields are the fields of pictures. Quality is of hashes that tell it.
var pictureFields = []db.Field{{Name: "width", Type: db.Int}, {Name: "height", Type: db.Int},
	{Name: "bytes", Type: db.Int}, {Name: "modified", Type: db.Time}, {Name: "taken_at", Type: db.Time},
	{Name: "camera", Type: db.String}, {Name: "quality", Type: db.Int}}

// Schema returns the schema of a collection for the pictures.
func (s *Pictures) Schema() (db.Schema, error) {
	out := db.Schema{Modalities: []db.Modality{s.Modality}, Encoders: s.Encoders}
	if s.Modality.Name == "" {
		out = s.hashed.schema()
	}
	for _, f := range pictureFields {
		if f.Name != "quality" || out.Hash == "pdq" {
			out.Fields = append(out.Fields, f)
		}
	}
	return out, nil
}

// Check takes the schema of the collection. Fields of pictures that it lacks, or has of another type, are
// left out.
func (s *Pictures) Check(ctx context.Context, c api.Collection, schema db.Schema) (err error) {
	s.schema = schema
	s.stored = func(key string) (*db.Item, error) { return c.Get(ctx, key) }
	s.encode = func(e PictureEncoder, files []string) ([]encoder.Vector, []error, error) {
		return e.Encode(ctx, files)
	}
	if len(schema.Modalities) == 0 {
		return s.hashed.check(c, schema)
	}
	if s.given != "" {
		return exit.Usagef("--hash %s: collection %q has vectors of pictures, and no codes of a hash: make another one with --init --collection NAME",
			s.given, c.Name())
	}
	s.encoders, err = s.Open(schema)
	return err
}

func (s *Pictures) Next(item *db.Item) error {
	if s.at == len(s.files) {
		return io.EOF
	}
	s.readAhead()
	if len(s.made) == 0 {
		for range min(encodedTogether, len(s.queue)) {
			s.made = append(s.made, <-s.queue[0])
			s.queue = s.queue[1:]
		}
		s.readAhead()
		for _, e := range s.encoders {
			if err := s.addVectors(e); err != nil {
				return err
			}
		}
	}
	p := s.made[0]
	s.made = s.made[1:]
	item.Key, item.Labels, item.Fields, item.Payload = p.key, p.labels, p.fields, nil
	p.addTo(item)
	s.at++
	return p.err
}

// addTo sets all that an item gets of a picture, but for its fields.
func (p *madePicture) addTo(item *db.Item) {
	item.Code = p.code
	maps.Copy(item.Vectors, p.vectors)
	maps.Copy(item.Sparse, p.sparse)
	if p.payload != nil {
		item.Payload = p.payload
	}
}

// AddPicture adds a picture to an item of a collection: what import --pictures would store of it, but for the
// field modified, so that --sync of a folder does not miss a file of the item. Fields that the item has stay.
func AddPicture(ctx context.Context, c api.Collection, schema db.Schema, o PictureOptions, file string,
	item *db.Item) error {
	s := &Pictures{PictureOptions: o, hashed: hashed{flag: "--picture"}}
	if err := s.Check(ctx, c, schema); err != nil {
		return err
	}
	defer s.closeEncoders()
	path, err := filepath.Abs(file)
	p := &madePicture{file: path}
	if err == nil {
		err = s.make(p)
	}
	if err != nil {
		return exit.Failedf("--picture %s: %w", file, err)
	}
	s.made = []*madePicture{p}
	for _, e := range s.encoders {
		if err := s.addVectors(e); err != nil {
			return err
		}
	}
	if p.err != nil {
		return p.err
	}
	for name, value := range p.fields {
		if _, has := item.Fields[name]; !has && name != "modified" {
			item.Fields[name] = value
		}
	}
	p.addTo(item)
	return nil
}

// bad returns the error of the row of a picture.
func (p *madePicture) bad(err error) error { return &rows.Error{Err: fmt.Errorf("%q: %w", p.key, err)} }

// readAhead starts to read the next files.
func (s *Pictures) readAhead() {
	most := max(encodedTogether, aheadOfReader*cap(s.free))
	for ; s.asked < len(s.files) && len(s.queue) < most; s.asked++ {
		answer := make(chan *madePicture, 1)
		s.queue = append(s.queue, answer)
		f := s.files[s.asked]
		s.work.Go(func() {
			select {
			case s.free <- struct{}{}:
				p := &madePicture{key: keyOf(f.path), file: filepath.Join(s.root, f.path)}
				p.err = s.read(p, f)
				answer <- p
				<-s.free
			case <-s.closed:
			}
		})
	}
}

// read makes all parts of an item but the vectors of encoders that read files.
func (s *Pictures) read(p *madePicture, f found) error {
	if f.err != nil {
		return p.bad(picture.Reason(f.err))
	}
	old, err := s.stored(p.key)
	if err != nil && !errors.Is(err, db.ErrNotFound) {
		return err
	}
	if s.Labels {
		folders := strings.Split(p.key, "/")
		p.labels = folders[:len(folders)-1]
	}
	if old != nil {
		if s.unchanged(old, p.labels, f.info) {
			return rows.ErrUnchanged
		}
		for _, other := range s.others {
			if info, err := os.Stat(filepath.Join(other, f.path)); err == nil && isOf(old, info) {
				return p.bad(fmt.Errorf("the collection has the picture of this name in %s: import a folder above both, or another collection",
					other))
			}
		}
		if s.Labels { // those that somebody has given stay
			p.labels = append(slices.Clip(p.labels), old.Labels...)
		}
	}
	if err := s.make(p); err != nil {
		return p.bad(err)
	}
	return nil
}

// make decodes a picture and makes its code, the vectors of built-in encoders, its fields and the thumbnail.
func (s *Pictures) make(p *madePicture) error {
	m, err := picture.Read(p.file)
	if err != nil {
		return err
	}
	quality := -1
	if s.hash != nil {
		p.code, quality = s.hash.OfPicture(m.Image)
	}
	p.vectors, p.sparse = map[string][]float32{}, map[string]db.Sparse{}
	for _, e := range s.encoders {
		if e.OfPicture != nil {
			p.vectors[e.Modality] = e.OfPicture(m.Upright())
		}
	}
	if s.Thumbnails {
		if p.payload, err = m.Thumbnail(); err != nil {
			return err
		}
	}
	p.fields = s.fieldsOf(m, quality)
	return nil
}

// isOf reports whether an item was made of a file, as the file is now.
func isOf(it *db.Item, info fs.FileInfo) bool {
	modified, _ := it.Fields["modified"].(time.Time)
	return it.Fields["bytes"] == info.Size() && modified.Equal(info.ModTime().Truncate(time.Microsecond))
}

// unchanged reports whether an item has all that the import would give it, of a file that is as it was.
func (s *Pictures) unchanged(old *db.Item, labels []string, info fs.FileInfo) bool {
	if !isOf(old, info) || s.Thumbnails && len(old.Payload) == 0 {
		return false
	}
	for _, e := range s.encoders {
		_, sparse := old.Sparse[e.Modality]
		if _, dense := old.Vectors[e.Modality]; !dense && !sparse {
			return false
		}
	}
	return !slices.ContainsFunc(labels, func(l string) bool { return !slices.Contains(old.Labels, l) })
}

// fieldsOf returns the fields of a picture that the collection has.
func (s *Pictures) fieldsOf(m *picture.Picture, quality int) map[string]any {
	width, height := m.Bounds().Dx(), m.Bounds().Dy()
	if m.Orientation > 4 { // as a person sees it
		width, height = height, width
	}
	all := map[string]any{"width": int64(width), "height": int64(height), "bytes": m.Bytes,
		"modified": m.Modified.Truncate(time.Microsecond)}
	if quality >= 0 {
		all["quality"] = int64(quality)
	}
	if !m.TakenAt.IsZero() {
		all["taken_at"] = m.TakenAt
	}
	if m.Camera != "" {
		all["camera"] = m.Camera
	}
	fields := map[string]any{}
	for _, f := range pictureFields {
		has := func(of db.Field) bool { return of.Name == f.Name && of.Type == f.Type }
		if value, ok := all[f.Name]; ok && slices.ContainsFunc(s.schema.Fields, has) {
			fields[f.Name] = value
		}
	}
	return fields
}

// addVectors adds the vectors of an encoder of files to the pictures that wait. A picture that the encoder
// refuses costs only itself.
func (s *Pictures) addVectors(e PictureEncoder) error {
	if e.Encode == nil {
		return nil
	}
	var all []*madePicture
	var files []string
	for _, p := range s.made {
		switch {
		case p.err == nil && strings.ContainsAny(p.file, "\r\n"):
			p.err = p.bad(errors.New("an encoder reads a path a line: rename the file"))
		case p.err == nil:
			all, files = append(all, p), append(files, p.file)
		}
	}
	if len(all) == 0 {
		return nil
	}
	vectors, refused, err := s.encode(e, files)
	if err != nil {
		return err
	}
	for i, p := range all {
		switch x := vectors[i]; {
		case refused[i] != nil:
			p.err = p.bad(refused[i])
		case x.Sparse != nil:
			p.sparse[e.Modality] = *x.Sparse
		default:
			p.vectors[e.Modality] = x.Dense
		}
	}
	return nil
}
