package explore

import (
	"cmp"
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

	"github.com/fddhdb/fddhdb/cmd/fddhdb/source"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/files/npy"
)

// A vector is the start of a query. One of its fields is set.
type vector struct {
	dense  []float32
	sparse *db.Sparse
	code   []byte
}

// uploads are the latest few files of vectors and pictures that clients have sent, in a
// folder of their own.
type uploads struct {
	receiving *room // bounds the files that arrive at a time

	mu     sync.Mutex // guards the fields below
	dir    string     // "" before the first upload
	closed bool
	list   []*upload // the kept files, oldest first
}

// An upload is a file of vectors, or a picture. Of the name that the client has sent its path has the
// extension of a file of vectors, and nothing else.
type upload struct {
	id, name, path string
	picture        string // type of a picture; "": a file of vectors

	users int  // requests that use the file; guarded by uploads.mu
	gone  bool // it is not kept any more: its last user removes it; guarded by uploads.mu

	turn *room    // of one place, for the request that reads a file of vectors
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

// upload stores a file of vectors, or a picture.
func (s *Server) upload(ctx context.Context, v url.Values, body io.Reader) (*reply, error) {
	p := &parameters{values: v}
	name, member := p.text("name", ""), p.text("member", "")
	if err := p.end(); err != nil {
		return nil, err
	}
	u, err := s.uploads.receive(ctx, name, body)
	if err != nil {
		return nil, err
	}
	if u.picture != "" {
		s.uploads.keep(u)
		return newReply(&pictureForm{Picture: u.id, Name: u.name, Media: "/api/media?picture=" + u.id})
	}
	out, err := s.compute(ctx, func() (any, error) {
		r, err := u.open(member)
		if err != nil {
			return nil, err
		}
		defer r.Close()
		return &uploadForm{Upload: u.id, Name: u.name, Rows: r.Rows(), Cols: r.Cols()}, nil
	})
	if err != nil {
		return nil, errors.Join(err, os.Remove(u.path)) // it is not in the list, so no other request reads it
	}
	s.uploads.keep(u)
	return out, nil
}

// receive writes a file as it arrives.
func (l *uploads) receive(ctx context.Context, name string, body io.Reader) (*upload, error) {
	if err := l.receiving.enter(ctx); err != nil {
		return nil, err
	}
	defer l.receiving.leave()
	u := &upload{id: rand.Text(), name: name, turn: newRoom(1)}
	ext := strings.ToLower(filepath.Ext(name))
	if !slices.Contains(extensions, ext) {
		var err error
		if body, ext, err = u.asPicture(body); err != nil {
			return nil, err
		}
	}
	dir, err := l.folder()
	if err != nil {
		return nil, err
	}
	u.path = filepath.Join(dir, u.id+ext)
	if err := u.write(body); err != nil {
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
		temp, err := filepath.Abs(os.TempDir()) // encoders run in another folder
		if err != nil {
			return "", err
		}
		dir, err := os.MkdirTemp(temp, "fddhdb-explore-")
		if err != nil {
			return "", err
		}
		l.dir = dir
	}
	return l.dir, nil
}

// keep adds a file to the list, and gives up the oldest if there are too many.
func (l *uploads) keep(u *upload) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, u)
	if len(l.list) > keptUploads {
		l.list[0].gone = true
		l.list[0].removeUnused()
		l.list = slices.Delete(l.list, 0, 1)
	}
}

// write writes the file as it arrives.
func (u *upload) write(body io.Reader) error {
	f, err := os.OpenFile(u.path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, body)
	return errors.Join(bodyError(err), f.Close())
}

// bodyError gives an error of reading a file that is sent its status.
func bodyError(err error) error {
	var large *http.MaxBytesError
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded): // deadline of the connection
		return statusErrorf(http.StatusRequestTimeout, "the file did not arrive within %v", receiveTime)
	case errors.As(err, &large) && large.Limit == maxPicture:
		return statusErrorf(http.StatusRequestEntityTooLarge,
			"a picture of at most %d MiB can be sent: make a smaller copy", maxPicture>>20)
	case errors.As(err, &large):
		return statusErrorf(http.StatusRequestEntityTooLarge,
			"a file of at most %d MiB can be sent: cut out the rows to ask for", maxUpload>>20)
	}
	return err
}

// use returns a kept file, which is there until the caller gives it back with done.
func (l *uploads) use(id string) (*upload, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, u := range l.list {
		if u.id == id {
			u.users++
			return u, nil
		}
	}
	return nil, statusErrorf(http.StatusNotFound, "the file is not here any more: send it again")
}

// done gives back a file.
func (l *uploads) done(u *upload) {
	l.mu.Lock()
	defer l.mu.Unlock()
	u.users--
	u.removeUnused()
}

// removeUnused removes the file if it is not kept and nobody uses it. The caller has the lock.
func (u *upload) removeUnused() {
	if u.gone && u.users == 0 {
		_ = os.Remove(u.path) // else it goes with the folder
	}
}

// base returns the name that the client has sent, without folders.
func (u *upload) base() string { return filepath.Base(u.name) }

func (l *uploads) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed, l.list = true, nil
	if l.dir == "" {
		return nil
	}
	return os.RemoveAll(l.dir)
}

// open opens a file of vectors for reading. Errors have the name that the client has sent.
func (u *upload) open(member string) (*source.Vectors, error) {
	path := u.path
	if member != "" {
		path += ":" + member
	}
	r, err := source.OpenVectors("", path)
	return r, u.worded(err)
}

// worded replaces the path in an error by the name that the client has sent, and the
// member by the parameter.
func (u *upload) worded(err error) error {
	if err == nil {
		return nil
	}
	return badRequest("%s", strings.NewReplacer(u.path+":NAME", "member=NAME", u.path,
		u.base()).Replace(err.Error()))
}

// row returns a row of a file, as a vector or as a code. It reads the rows before it,
// unless it is the row of the last request. The caller must have the turn of the file.
func (u *upload) rowAt(ctx context.Context, member string, row int, code bool) (vector, error) {
	if last := &u.last; last.ok && last.member == member && last.row == row && last.code == code {
		return last.x, nil
	}
	var x vector
	var err error
	if code {
		x, err = u.codeAt(row)
	} else {
		x, err = u.vectorAt(ctx, member, row)
	}
	if err != nil {
		return vector{}, err
	}
	u.last.ok, u.last.member, u.last.row, u.last.code, u.last.x = true, member, row, code, x
	return x, nil
}

func (u *upload) noRow(row, rows int) error {
	return badRequest("row %d: %s has %d rows, counted from 0", row, u.base(), rows)
}

func (u *upload) codeAt(row int) (vector, error) {
	codes, err := npy.ReadCodes(u.path)
	switch {
	case err != nil:
		return vector{}, fmt.Errorf("%w: for a file of vectors, from is missing", u.worded(err))
	case row >= codes.Len():
		return vector{}, u.noRow(row, codes.Len())
	}
	return vector{code: codes.At(row).AppendBytes(nil, codes.Bits())}, nil
}

func (u *upload) vectorAt(ctx context.Context, member string, row int) (vector, error) {
	r, err := u.open(member)
	if err != nil {
		return vector{}, err
	}
	defer r.Close()
	if row >= r.Rows() {
		return vector{}, u.noRow(row, r.Rows())
	}
	if err = r.Skip(ctx, row); err == nil {
		err = r.Read()
	}
	if err != nil {
		return vector{}, cmp.Or(ctx.Err(), u.worded(err))
	}
	var x vector
	x.dense, x.sparse = r.Copy()
	return x, nil
}
