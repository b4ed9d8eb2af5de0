package command

import (
	"fmt"
	"os"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/encoder"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/db"
)

// A session is the database that the shell keeps open. Verbs on its folder use it
// instead of opening it again. It belongs to the goroutine that runs the lines.
type session struct {
	dir      string
	readOnly bool
	d        *db.DB // nil if it was closed for a verb and could not be opened again
	encoders []*encoder.Encoder
}

// openSession opens the database in dir for the session; closeSession ends it.
func (e *env) openSession(dir string, readOnly bool) error {
	if isFile(dir) {
		return exit.Usagef("not a database: %s is a file; a database is a folder", dir)
	}
	s := &session{dir: dir, readOnly: readOnly}
	if err := s.open(e); err != nil {
		return err
	}
	e.session = s
	return nil
}

func (e *env) closeSession() error {
	s := e.session
	e.session = nil
	s.endEncoders()
	return s.close()
}

func (s *session) open(e *env) error {
	d, err := db.Open(s.dir, &db.Options{MustExist: true, ReadOnly: s.readOnly})
	switch {
	case unwritable(err) && !s.readOnly:
		return exit.Wrap(err, "fddhdb --readonly %s only looks at it", s.dir)
	case err != nil:
		return openError(s.dir, err)
	}
	s.d = d
	e.warnOfLosses(s.dir, d)
	return nil
}

func (s *session) close() error {
	if s.d == nil {
		return nil
	}
	d := s.d
	s.d = nil
	return d.Close()
}

// has reports whether dir is the database of the session, in any spelling.
func (s *session) has(dir string) bool {
	if s == nil {
		return false
	}
	return dir == s.dir || sameFile(dir, s.dir)
}

// sameFile reports whether two paths lead to the same file or folder.
func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

// database returns the open database, for writing if write is set.
func (s *session) database(e *env, write bool) (*db.DB, error) {
	if write && s.readOnly {
		return nil, errShellReadOnly
	}
	if s.d == nil {
		if err := s.open(e); err != nil {
			return nil, err
		}
	}
	return s.d, nil
}

var errShellReadOnly = fmt.Errorf("%w: the shell was opened with --readonly: open it without to change anything", db.ErrReadOnly)

// open opens the database in dir, with a function that closes it. The database of a
// session is open already, and stays open.
func (e *env) open(dir string, options *db.Options) (*db.DB, func() error, error) {
	if e.session.has(dir) {
		d, err := e.session.database(e, !options.ReadOnly)
		return d, func() error { return nil }, err
	}
	d, err := db.Open(dir, options)
	if err != nil {
		return nil, nil, err
	}
	return d, d.Close, nil
}

// held returns the database of the session if dir is its folder, else nil.
func (e *env) held(dir string) (*db.DB, error) {
	if !e.session.has(dir) {
		return nil, nil
	}
	return e.session.database(e, false)
}

// whileClosed runs f, which replaces files of the database in dir and needs it closed.
// A session closes it meanwhile.
func (e *env) whileClosed(dir string, f func() error) error {
	s := e.session
	if !s.has(dir) {
		return f()
	}
	if s.readOnly {
		return errShellReadOnly
	}
	if err := s.close(); err != nil {
		return err
	}
	err := f()
	if reopened := s.open(e); err == nil {
		err = reopened // otherwise the next verb tries again
	}
	return err
}
