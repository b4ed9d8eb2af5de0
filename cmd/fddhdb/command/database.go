package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/encoder"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
	"github.com/fddhdb/fddhdb/db/attach"
	"github.com/fddhdb/fddhdb/db/client"
)

// A place is an open database.
type place struct {
	d     api.Database
	own   func() *db.DB // nil: another process owns it, or its result is nil as long as another one does
	close func() error
}

// owned returns the database if this process owns it now, else nil.
func (p place) owned() *db.DB {
	if p.own == nil {
		return nil
	}
	return p.own()
}

// openPlace opens the database in a folder, or at a URL. Every verb opens its database here and nowhere else.
// If another process owns the folder, the verb attaches to it, unless --no-attach is given.
func (e *env) openPlace(ctx context.Context, dir string, options *db.Options) (place, error) {
	switch {
	case e.at.is(dir):
		d, err := e.at.Open(ctx)
		if err != nil {
			return place{}, err
		}
		return place{d, nil, d.Close}, nil
	case isURL(dir):
		return e.openServer(dir)
	case e.noAttach:
		return openAlone(dir, options)
	}
	d, err := attach.Open(ctx, dir, attach.Options{DB: options, Stores: openRepository, Wait: e.wait})
	if err != nil {
		return place{}, err
	}
	if err := d.Alone(); err != nil {
		e.Warnf("warning: other processes cannot work through this one: %v", err)
	}
	return place{d, d.Own, d.Close}, nil
}

// openAlone opens the database in a folder for this process alone.
func openAlone(dir string, options *db.Options) (place, error) {
	d, err := db.Open(dir, options)
	if err != nil {
		return place{}, err
	}
	return place{api.Folder(d, openRepository), func() *db.DB { return d }, d.Close}, nil
}

// isURL reports whether a place is a database of a server.
func isURL(place string) bool {
	return strings.HasPrefix(place, "http://") || strings.HasPrefix(place, "https://")
}

// openServer returns the database of a server, with the token of --token-file or FDDHDB_TOKEN.
func (e *env) openServer(url string) (place, error) {
	token, err := e.token()
	if err != nil {
		return place{}, err
	}
	d, err := client.Open(url, client.Options{Token: token, Patience: 2 * time.Second})
	if err != nil {
		return place{}, exit.Usagef("%s", exit.Reason(err.Error()))
	}
	return place{d, nil, d.Close}, nil
}

// token returns the token for servers.
func (e *env) token() (string, error) {
	if e.tokenFile == "" {
		return os.Getenv("FDDHDB_TOKEN"), nil
	}
	b, err := os.ReadFile(e.tokenFile)
	if err != nil {
		return "", exit.Usagef("--token-file: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}

// owner returns the database for what only the process that owns it can do. If another process owns it, the
// error says so and names what: a verb, with its flag if that matters.
func (p place) owner(what string) (*db.DB, error) {
	if d := p.owned(); d != nil {
		return d, nil
	}
	return nil, exit.Failedf(
		"%s needs the folder for itself: run it where the folder is, when no other process has that open", what)
}

// openAnd opens the database in dir, runs f and closes it.
func (e *env) openAnd(ctx context.Context, dir string, options *db.Options, f func(p place) error) error {
	if err := noFile(dir); err != nil && !e.at.is(dir) {
		return err
	}
	p, err := e.open(ctx, dir, options)
	if err != nil {
		return openError(dir, err)
	}
	if !e.session.has(dir) {
		e.warnOfLosses(dir, p)
	}
	return errors.Join(f(p), p.close())
}

// unwritable reports whether a folder could not be opened to write because this user may not,
// or nobody can, as its medium is mounted for reading only.
func unwritable(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
}

// openError adds advice to the error of a database that cannot be opened.
func openError(dir string, err error) error {
	switch {
	case errors.Is(err, db.ErrNotDatabase) && isEmpty(dir):
		return exit.Wrap(err, "fddhdb init %s --modality NAME:DIM creates one, import --init one of files",
			dir)
	case errors.Is(err, db.ErrNotDatabase) && isDatabase(dir) && !hasStore(dir):
		return err // it says what is missing
	case errors.Is(err, db.ErrNotDatabase) && hasStore(dir):
		return exit.Wrap(err, "fddhdb repair %s", dir)
	case errors.Is(err, db.ErrNotDatabase):
		return exit.Wrap(err, "give the folder of a database, or a new one to init")
	case errors.Is(err, db.ErrLocked):
		return exit.Wrap(err, "end that process, or wait for it")
	}
	return err
}

// isEmpty reports whether dir is empty or missing.
func isEmpty(dir string) bool {
	entries, err := os.ReadDir(dir)
	return errors.Is(err, os.ErrNotExist) || err == nil && len(entries) == 0
}

// isDatabase reports whether a folder has the marker of a database.
func isDatabase(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, db.MarkerName))
	return err == nil
}

// hasStore reports whether a folder has the store of a database, perhaps without its marker.
func hasStore(dir string) bool {
	entries, _ := os.ReadDir(filepath.Join(dir, "store"))
	return slices.ContainsFunc(entries,
		func(e os.DirEntry) bool { return strings.HasPrefix(e.Name(), "MANIFEST-") })
}

// collection returns a collection by name.
func collection(ctx context.Context, d api.Database, name string) (api.Collection, error) {
	c, err := d.Collection(ctx, name)
	if !errors.Is(err, db.ErrNotFound) {
		return c, err
	}
	names, listErr := d.Collections(ctx)
	switch {
	case listErr != nil:
		return nil, listErr
	case len(names) == 0:
		return nil, exit.Usagef("there is no collection %q, nor any other: init creates one", name)
	}
	return nil, exit.Usagef("there is no collection %q: there is %s", name, strings.Join(names, ", "))
}

// withNew runs f on the database in dir, and creates it if it is missing. If f fails, a
// created database is removed again.
func (e *env) withNew(ctx context.Context, dir string, f func(d api.Database) error) (err error) {
	if err := noFile(dir); err != nil && !e.at.is(dir) {
		return err
	}
	p, err := e.open(ctx, dir, &db.Options{MustExist: true})
	if err == nil {
		return errors.Join(f(p.d), p.close())
	}
	if !errors.Is(err, db.ErrNotDatabase) {
		return openError(dir, err)
	}
	_, missing := os.Lstat(dir)
	// A folder that is not empty may hold a store that has only lost its marker.
	return e.create(ctx, dir, missing == nil, isEmpty(dir), f)
}

// create is withNew for a folder that was no database when it was last checked. existed
// and empty are from that check.
func (e *env) create(ctx context.Context, dir string, existed, empty bool,
	f func(d api.Database) error) error {
	// Nobody works through this process until f has succeeded: what others store would go with the folder.
	p, err := openAlone(dir, nil)
	if errors.Is(err, db.ErrLocked) {
		p, err = e.openPlace(ctx, dir, nil)
	}
	if err != nil {
		// It holds something else, or cannot be written to.
		return openError(dir, err)
	}
	// Another process may have created it meanwhile, and closed it by now or not.
	d := p.owned()
	empty = empty && d != nil && d.Recovery().Found == 0
	err = f(p.d)
	var partly *partlyError // it goes on another time
	empty = empty && !errors.As(err, &partly)
	if err != nil && empty {
		// A database without a marker cannot be opened. A process that creates one in
		// its place writes a new marker.
		empty = os.Remove(filepath.Join(dir, db.MarkerName)) == nil
	}
	if closed := p.close(); closed != nil || err == nil {
		return errors.Join(err, closed)
	}
	if !empty || isDatabase(dir) {
		return err
	}
	return errors.Join(err, remove(dir, existed))
}

// remove deletes a database that was just created in a folder with nothing else. It
// also deletes the folder, unless keepFolder is set.
func remove(dir string, keepFolder bool) error {
	if !keepFolder {
		return os.RemoveAll(dir)
	}
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, entry.Name())))
	}
	return err
}

// isFile reports whether path exists and is no folder.
func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}

// noFile refuses a path that is no folder.
func noFile(dir string) error {
	if isFile(dir) {
		return exit.Usagef("not a database: %s is a file; a database is a folder", dir)
	}
	return nil
}

// Look opens the database in dir, if possible, and runs f. It prints no
// warnings.
func (e *env) Look(ctx context.Context, dir string, f func(d api.Database)) {
	quiet := &env{Printer: term.NewPrinter(io.Discard, io.Discard), session: e.session, at: e.at,
		noAttach: e.noAttach, tokenFile: e.tokenFile, wait: 200 * time.Millisecond}
	_ = quiet.openAnd(ctx, dir, &db.Options{ReadOnly: true}, func(p place) error {
		f(p.d)
		return nil
	})
}

// A session is the database that the shell keeps open. Verbs on its folder use it
// instead of opening it again. It belongs to the goroutine that runs the lines.
type session struct {
	dir      string
	readOnly bool
	place    *place // nil if it was closed for a verb and could not be opened again
	encoders []*encoder.Encoder
}

// openSession opens the database in dir for the session; closeSession ends it.
func (e *env) openSession(ctx context.Context, dir string, readOnly bool) error {
	if err := noFile(dir); err != nil {
		return err
	}
	s := &session{dir: dir, readOnly: readOnly}
	if err := s.open(ctx, e); err != nil {
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

func (s *session) open(ctx context.Context, e *env) error {
	p, err := e.openPlace(ctx, s.dir, &db.Options{MustExist: true, ReadOnly: s.readOnly})
	switch {
	case unwritable(err) && !s.readOnly:
		return exit.Wrap(err, "fddhdb --readonly %s only looks at it", s.dir)
	case err != nil:
		return openError(s.dir, err)
	}
	s.place = &p
	e.warnOfLosses(s.dir, p)
	return nil
}

func (s *session) close() error {
	if s.place == nil {
		return nil
	}
	p := s.place
	s.place = nil
	return p.close()
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

// database returns the open database, for writing if write is set. It stays open when that is closed.
func (s *session) database(ctx context.Context, e *env, write bool) (place, error) {
	if write && s.readOnly {
		return place{}, errShellReadOnly
	}
	if s.place == nil {
		if err := s.open(ctx, e); err != nil {
			return place{}, err
		}
	}
	return place{s.place.d, s.place.own, func() error { return nil }}, nil
}

var errShellReadOnly = fmt.Errorf(
	"%w: the shell was opened with --readonly: open it without to change anything", db.ErrReadOnly)

// open opens the database in dir. The database of a session is open already, and stays open.
func (e *env) open(ctx context.Context, dir string, options *db.Options) (place, error) {
	if e.session.has(dir) {
		return e.session.database(ctx, e, !options.ReadOnly)
	}
	return e.openPlace(ctx, dir, options)
}

// whileClosed runs f, which replaces files of the database in dir and needs it closed.
// A session closes it meanwhile. what names f, see place.owner.
func (e *env) whileClosed(ctx context.Context, dir, what string, f func() error) error {
	s := e.session
	if !s.has(dir) {
		return f()
	}
	if s.readOnly {
		return errShellReadOnly
	}
	if s.place != nil {
		if _, err := s.place.owner(what); err != nil {
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

// warnOfLosses prints to stderr that commits are missing from a database, each time it
// is opened, until the user acknowledges it. A process that does not own the database does not know.
func (e *env) warnOfLosses(dir string, p place) {
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
