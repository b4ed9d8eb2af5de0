package run

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
	"github.com/fddhdb/fddhdb/db/attach"
	"github.com/fddhdb/fddhdb/db/client"
)

// A Place is an open database.
type Place struct {
	DB    api.Database
	Own   func() *db.DB // nil: another process owns it, or its result is nil as long as another one does
	Close func() error
}

// owned returns the database if this process owns it now, else nil.
func (p Place) owned() *db.DB {
	if p.Own == nil {
		return nil
	}
	return p.Own()
}

// OpenPlace opens the database in a folder, or at a URL. Every verb opens its database here and nowhere else.
// If another process owns the folder, the verb attaches to it, unless --no-attach is given.
func (e *Env) OpenPlace(ctx context.Context, dir string, options *db.Options) (Place, error) {
	switch {
	case e.At.is(dir):
		d, err := e.At.Open(ctx)
		if err != nil {
			return Place{}, err
		}
		return Place{d, nil, d.Close}, nil
	case IsURL(dir):
		return e.openServer(dir)
	case e.NoAttach:
		return openAlone(dir, options)
	}
	d, err := attach.Open(ctx, dir, attach.Options{DB: options, Stores: OpenRepository, Wait: e.Wait})
	if err != nil {
		return Place{}, err
	}
	if err := d.Alone(); err != nil {
		e.Warnf("warning: other processes cannot work through this one: %v", err)
	}
	return Place{d, d.Own, d.Close}, nil
}

// openAlone opens the database in a folder for this process alone.
func openAlone(dir string, options *db.Options) (Place, error) {
	d, err := db.Open(dir, options)
	if err != nil {
		return Place{}, err
	}
	return Place{api.Folder(d, OpenRepository), func() *db.DB { return d }, d.Close}, nil
}

// IsURL reports whether a place is a database of a server.
func IsURL(place string) bool {
	return strings.HasPrefix(place, "http://") || strings.HasPrefix(place, "https://")
}

// openServer returns the database of a server, with the token of --token-file or FDDHDB_TOKEN.
func (e *Env) openServer(url string) (Place, error) {
	token, err := e.token()
	if err != nil {
		return Place{}, err
	}
	d, err := client.Open(url, client.Options{Token: token, Patience: 2 * time.Second})
	if err != nil {
		return Place{}, exit.Usagef("%s", exit.Reason(err.Error()))
	}
	return Place{d, nil, d.Close}, nil
}

// token returns the token for servers.
func (e *Env) token() (string, error) {
	if e.TokenFile == "" {
		return os.Getenv("FDDHDB_TOKEN"), nil
	}
	b, err := os.ReadFile(e.TokenFile)
	if err != nil {
		return "", exit.Usagef("--token-file: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}

// Owner returns the database for what only the process that owns it can do. If another process owns it, the
// error says so and names what: a verb, with its flag if that matters.
func (p Place) Owner(what string) (*db.DB, error) {
	if d := p.owned(); d != nil {
		return d, nil
	}
	return nil, exit.Failedf(
		"%s needs the folder for itself: run it where the folder is, when no other process has that open", what)
}

// OpenAnd opens the database in dir, runs f and closes it.
func (e *Env) OpenAnd(ctx context.Context, dir string, options *db.Options, f func(p Place) error) error {
	if err := NoFile(dir); err != nil && !e.At.is(dir) {
		return err
	}
	p, err := e.Open(ctx, dir, options)
	if err != nil {
		return OpenError(dir, err)
	}
	if !e.Session.Has(dir) {
		e.WarnOfLosses(dir, p)
	}
	return errors.Join(f(p), p.Close())
}

// IsEmpty reports whether dir is empty or missing.
func IsEmpty(dir string) bool {
	entries, err := os.ReadDir(dir)
	return errors.Is(err, os.ErrNotExist) || err == nil && len(entries) == 0
}

// IsDatabase reports whether a folder has the marker of a database.
func IsDatabase(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, db.MarkerName))
	return err == nil
}

// HasStore reports whether a folder has the store of a database, perhaps without its marker.
func HasStore(dir string) bool {
	entries, _ := os.ReadDir(filepath.Join(dir, "store"))
	return slices.ContainsFunc(entries,
		func(e os.DirEntry) bool { return strings.HasPrefix(e.Name(), "MANIFEST-") })
}

// FindCollection returns a collection by name.
func FindCollection(ctx context.Context, d api.Database, name string) (api.Collection, error) {
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

// WithNew runs f on the database in dir, and creates it if it is missing. If f fails, a
// created database is removed again.
func (e *Env) WithNew(ctx context.Context, dir string, f func(d api.Database) error) (err error) {
	if err := NoFile(dir); err != nil && !e.At.is(dir) {
		return err
	}
	p, err := e.Open(ctx, dir, &db.Options{MustExist: true})
	if err == nil {
		return errors.Join(f(p.DB), p.Close())
	}
	if !errors.Is(err, db.ErrNotDatabase) {
		return OpenError(dir, err)
	}
	_, missing := os.Lstat(dir)
	// A folder that is not empty may hold a store that has only lost its marker.
	return e.Create(ctx, dir, missing == nil, IsEmpty(dir), f)
}

// Create is WithNew for a folder that was no database when it was last checked. existed
// and empty are from that check.
func (e *Env) Create(ctx context.Context, dir string, existed, empty bool,
	f func(d api.Database) error) error {
	// Nobody works through this process until f has succeeded: what others store would go with the folder.
	p, err := openAlone(dir, nil)
	if errors.Is(err, db.ErrLocked) {
		p, err = e.OpenPlace(ctx, dir, nil)
	}
	if err != nil {
		// It holds something else, or cannot be written to.
		return OpenError(dir, err)
	}
	// Another process may have created it meanwhile, and closed it by now or not.
	d := p.owned()
	empty = empty && d != nil && d.Recovery().Found == 0
	err = f(p.DB)
	var partly *PartlyError // it goes on another time
	empty = empty && !errors.As(err, &partly)
	if err != nil && empty {
		// A database without a marker cannot be opened. A process that creates one in
		// its place writes a new marker.
		empty = os.Remove(filepath.Join(dir, db.MarkerName)) == nil
	}
	if closed := p.Close(); closed != nil || err == nil {
		return errors.Join(err, closed)
	}
	if !empty || IsDatabase(dir) {
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

// IsFile reports whether path exists and is no folder.
func IsFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}

// NoFile refuses a path that is no folder.
func NoFile(dir string) error {
	if IsFile(dir) {
		return exit.Usagef("not a database: %s is a file; a database is a folder", dir)
	}
	return nil
}

// Look opens the database in dir, if possible, and runs f. It prints no
// warnings.
func (e *Env) Look(ctx context.Context, dir string, f func(d api.Database)) {
	quiet := &Env{Printer: term.NewPrinter(io.Discard, io.Discard), Session: e.Session, At: e.At,
		NoAttach: e.NoAttach, TokenFile: e.TokenFile, Wait: 200 * time.Millisecond}
	_ = quiet.OpenAnd(ctx, dir, &db.Options{ReadOnly: true}, func(p Place) error {
		f(p.DB)
		return nil
	})
}
