package explore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/fddhdb/fddhdb/codec/vecfile"
	"github.com/fddhdb/fddhdb/db"
)

// A vector is the start of a query. One of its fields is set.
type vector struct {
	dense  []float32
	sparse *db.Sparse
	code   []byte
}

// uploads are the latest few files of vectors that clients have sent, in a folder of
// their own.
type uploads struct {
	open      func(path string) (vecfile.Reader, error)
	receiving *room // bounds the files that arrive at a time

	mu     sync.Mutex // guards the fields below
	dir    string     // "" before the first upload
	closed bool
	list   []*upload // the kept files, oldest first
}

// An upload is a file of vectors. Its path uses only the extension of the name that the
// client has sent.
type upload struct {
	id, name, path string

	turn *room    // of one place, for the request that reads the file
	last struct { // the row that was read last; guarded by turn
		ok     bool
		member string
		row    int
		code   bool
		x      vector
	}
}

// extensions are the extensions of files of vectors.
var extensions = []string{".npy", ".npz", ".csv", ".jsonl", ".parquet", ".mat"}

// uploadForm describes a file that was sent.
type uploadForm struct {
	Upload string `json:"upload"` // id for searches
	Name   string `json:"name"`
	Rows   int    `json:"rows"`
	Cols   int    `json:"cols"`
}

// upload stores a file of vectors.
func (s *Server) upload(ctx context.Context, v url.Values, body io.Reader) (*reply, error) {
	p := &parameters{values: v}
	name, member := p.text("name", ""), p.text("member", "")
	if err := p.end(); err != nil {
		return nil, err
	}
	ext := strings.ToLower(filepath.Ext(name))
	if !slices.Contains(extensions, ext) {
		return nil, badRequest("name=%.100q: the name of a file is expected, one of %s", name, strings.Join(extensions, ", "))
	}
	u, err := s.uploads.receive(ctx, name, ext, body)
	if err != nil {
		return nil, err
	}
	out, err := s.compute(ctx, func() (any, error) {
		r, err := s.uploads.openFile(u, member)
		if err != nil {
			return nil, err
		}
		defer r.Close()
		return &uploadForm{Upload: u.id, Name: u.name, Rows: r.Rows(), Cols: r.Cols()}, nil
	})
	if err != nil {
		return nil, errors.Join(err, os.Remove(u.path)) // it is not in the list, so no other request reads it
	}
	return out, s.uploads.keep(u)
}

// receive writes a file as it arrives.
func (l *uploads) receive(ctx context.Context, name, ext string, body io.Reader) (*upload, error) {
	if err := l.receiving.enter(ctx); err != nil {
		return nil, err
	}
	defer l.receiving.leave()
	dir, err := l.folder()
	if err != nil {
		return nil, err
	}
	id := rand.Text()
	u := &upload{id: id, name: name, path: filepath.Join(dir, id+ext), turn: newRoom(1)}
	if err := writeTo(u.path, body); err != nil {
		return nil, errors.Join(err, os.Remove(u.path))
	}
	return u, nil
}

// folder returns the folder of the files, and creates it for the first one.
func (l *uploads) folder() (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return "", db.ErrClosed
	}
	if l.dir == "" {
		dir, err := os.MkdirTemp("", "fddhdb-explore-")
		if err != nil {
			return "", err
		}
		l.dir = dir
	}
	return l.dir, nil
}

// keep adds a file to the list, and removes the oldest if there are too many.
func (l *uploads) keep(u *upload) error {
	l.mu.Lock()
	l.list = append(l.list, u)
	var oldest *upload
	if len(l.list) > keptUploads {
		oldest = l.list[0]
		l.list = slices.Delete(l.list, 0, 1)
	}
	l.mu.Unlock()
	if oldest == nil {
		return nil
	}
	return oldest.delete()
}

func writeTo(path string, body io.Reader) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, body)
	var large *http.MaxBytesError
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded): // deadline of the connection
		err = statusErrorf(http.StatusRequestTimeout, "the file did not arrive within %v", receiveTime)
	case errors.As(err, &large):
		err = statusErrorf(http.StatusRequestEntityTooLarge, "a file of at most %d MiB can be sent: cut out the rows to ask for", maxUpload>>20)
	}
	return errors.Join(err, f.Close())
}

// delete removes a file that is no longer in the list, once the request that reads it
// has ended.
func (u *upload) delete() error {
	u.turn.places <- struct{}{}
	defer u.turn.leave()
	return os.Remove(u.path)
}

func (l *uploads) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed, l.list = true, nil
	if l.dir == "" {
		return nil
	}
	return os.RemoveAll(l.dir)
}

func (l *uploads) get(id string) (*upload, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, u := range l.list {
		if u.id == id {
			return u, nil
		}
	}
	return nil, statusErrorf(http.StatusNotFound, "the file is not here any more: send it again")
}

// openFile opens a file for reading. Errors have the name that the client has sent.
func (l *uploads) openFile(u *upload, member string) (vecfile.Reader, error) {
	path := u.path
	if member != "" {
		path += ":" + member
	}
	r, err := l.open(path)
	return r, u.worded(err)
}

// worded replaces the path in an error by the name that the client has sent, and the
// member by the parameter.
func (u *upload) worded(err error) error {
	if err == nil {
		return nil
	}
	return badRequest("%s", strings.NewReplacer(u.path+":NAME", "member=NAME", u.path, filepath.Base(u.name)).Replace(err.Error()))
}

// row returns a row of a file, as a vector or as a code. It reads the rows before it,
// unless it is the row of the last request. The caller must have the turn of the file.
func (l *uploads) row(ctx context.Context, u *upload, member string, row int, code bool) (vector, error) {
	if last := &u.last; last.ok && last.member == member && last.row == row && last.code == code {
		return last.x, nil
	}
	var x vector
	var err error
	if code {
		x, err = u.codeAt(row)
	} else {
		x, err = l.vectorAt(ctx, u, member, row)
	}
	if err != nil {
		return vector{}, err
	}
	u.last.ok, u.last.member, u.last.row, u.last.code, u.last.x = true, member, row, code, x
	return x, nil
}

func (u *upload) noRow(row, rows int) error {
	return badRequest("row %d: %s has %d rows, counted from 0", row, filepath.Base(u.name), rows)
}

func (u *upload) codeAt(row int) (vector, error) {
	codes, err := vecfile.ReadCodes(u.path)
	switch {
	case err != nil:
		return vector{}, fmt.Errorf("%w: for a file of vectors, from is missing", u.worded(err))
	case row >= codes.Len():
		return vector{}, u.noRow(row, codes.Len())
	}
	return vector{code: codes.At(row).AppendBytes(nil, codes.Bits())}, nil
}

func (l *uploads) vectorAt(ctx context.Context, u *upload, member string, row int) (vector, error) {
	r, err := l.openFile(u, member)
	if err != nil {
		return vector{}, err
	}
	defer r.Close()
	if row >= r.Rows() {
		return vector{}, u.noRow(row, r.Rows())
	}
	sparse, isSparse := r.(vecfile.SparseReader)
	var x vector
	if isSparse {
		x.sparse = &db.Sparse{}
	} else {
		x.dense = make([]float32, r.Cols())
	}
	for i := 0; ; i++ {
		if err := ctx.Err(); err != nil { // a small .npz may claim very many rows
			return vector{}, err
		}
		if isSparse {
			x.sparse.Index, x.sparse.Value, err = sparse.NextSparse(x.sparse.Index[:0], x.sparse.Value[:0])
		} else {
			err = r.Next(x.dense)
		}
		var bad *vecfile.Error
		if i < row && errors.As(err, &bad) && bad.Col >= 0 {
			continue // a row that is not asked for may be bad
		}
		if err == io.EOF {
			return vector{}, u.noRow(row, i)
		}
		if err != nil || i == row {
			return x, u.worded(err)
		}
	}
}
