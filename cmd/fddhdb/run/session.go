package run

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/encoder"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/db"
)

// A Session is the database that the shell keeps open. Verbs on its folder use it
// instead of opening it again. It belongs to the goroutine that runs the lines.
type Session struct {
	Dir      string
	ReadOnly bool
	Place    *Place // nil if it was closed for a verb and could not be opened again
	encoders []*encoder.Encoder
}

// OpenSession opens the database in dir for the session; CloseSession ends it.
func (e *Env) OpenSession(ctx context.Context, dir string, readOnly bool) error {
	if err := NoFile(dir); err != nil {
		return err
	}
	s := &Session{Dir: dir, ReadOnly: readOnly}
	if err := s.open(ctx, e); err != nil {
		return err
	}
	e.Session = s
	return nil
}

func (e *Env) CloseSession() error {
	s := e.Session
	e.Session = nil
	s.EndEncoders()
	return s.close()
}

func (s *Session) open(ctx context.Context, e *Env) error {
	p, err := e.OpenPlace(ctx, s.Dir, &db.Options{MustExist: true, ReadOnly: s.ReadOnly})
	switch {
	case Unwritable(err) && !s.ReadOnly:
		return exit.Wrap(err, "fddhdb --readonly %s only looks at it", s.Dir)
	case err != nil:
		return OpenError(s.Dir, err)
	}
	s.Place = &p
	e.WarnOfLosses(s.Dir, p)
	return nil
}

func (s *Session) close() error {
	if s.Place == nil {
		return nil
	}
	p := s.Place
	s.Place = nil
	return p.Close()
}

// Has reports whether dir is the database of the session, in any spelling.
func (s *Session) Has(dir string) bool {
	if s == nil {
		return false
	}
	return dir == s.Dir || sameFile(dir, s.Dir)
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

// Database returns the open database, for writing if write is set. It stays open when that is closed.
func (s *Session) Database(ctx context.Context, e *Env, write bool) (Place, error) {
	if write && s.ReadOnly {
		return Place{}, errShellReadOnly
	}
	if s.Place == nil {
		if err := s.open(ctx, e); err != nil {
			return Place{}, err
		}
	}
	return Place{s.Place.DB, s.Place.Own, func() error { return nil }}, nil
}

var errShellReadOnly = fmt.Errorf(
	"%w: the shell was opened with --readonly: open it without to change anything", db.ErrReadOnly)

// Open opens the database in dir. The database of a session is open already, and stays open.
func (e *Env) Open(ctx context.Context, dir string, options *db.Options) (Place, error) {
	if e.Session.Has(dir) {
		return e.Session.Database(ctx, e, !options.ReadOnly)
	}
	return e.OpenPlace(ctx, dir, options)
}

// WhileClosed runs f, which replaces files of the database in dir and needs it closed.
// A session closes it meanwhile. what names f, see Place.Owner.
func (e *Env) WhileClosed(ctx context.Context, dir, what string, f func() error) error {
	s := e.Session
	if !s.Has(dir) {
		return f()
	}
	if s.ReadOnly {
		return errShellReadOnly
	}
	if s.Place != nil {
		if _, err := s.Place.Owner(what); err != nil {
			return err
		}
	}
	if err := s.close(); err != nil {
		return err
	}
	err := f()
	if reopened := s.open(context.WithoutCancel(ctx), e); err == nil {
		err = reopened // otherwise the next verb tries again
	}
	return err
}

// WarnOfLosses prints to stderr that commits are missing from a database, each time it
// is opened, until the user acknowledges it. A process that does not own the database does not know.
func (e *Env) WarnOfLosses(dir string, p Place) {
	d := p.owned()
	if d == nil {
		return
	}
	r := d.Recovery()
	for _, l := range r.Losses {
		e.Warnf("warning: %s: %s: restore a backup, or do again what is lost (it is the latest that was written), and then: fddhdb verify %s --acknowledge", dir, l, dir)
	}
	if r.Problem != "" {
		e.Warnf("warning: %s: whether commits are missing is not known: %s: look whether what was written last is there", dir, r.Problem)
	}
}

// Encoder returns the encoder of a program, which the session keeps.
func (s *Session) Encoder(p encoder.Program) *encoder.Encoder {
	for _, e := range s.encoders {
		if e.Modality == p.Modality && e.Input == p.Input && e.Dir == p.Dir &&
			slices.Equal(e.Command, p.Command) && slices.Equal(e.Fingerprint, p.Fingerprint) {
			return e
		}
	}
	s.encoders = append(s.encoders, encoder.New(p))
	return s.encoders[len(s.encoders)-1]
}

// EndEncoders ends the programs that the session keeps.
func (s *Session) EndEncoders() {
	for _, e := range s.encoders {
		e.Close()
	}
	s.encoders = nil
}
