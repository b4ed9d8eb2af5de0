package attach

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
	"github.com/fddhdb/fddhdb/db/client"
)

// Options are the settings of Open. The zero value opens a database with the defaults of package db.
type Options struct {
	// DB are the options with which this process opens the database if it owns it, now or later.
	DB *db.Options

	// Stores opens places of backups, for backups that this process makes as the owner; nil: there are none.
	Stores api.OpenStore

	// Wait bounds how long to wait for a process that has the database open and serves nobody, such as one
	// that only reads; 0 means 10 seconds. After that the error is db.ErrLocked.
	Wait time.Duration
}

// A Database is a database that this process owns, or is attached to.
type Database struct {
	api.Database
	at *attachment
}

// An attachment is the way to the owner of a folder, which may be this process.
type attachment struct {
	dir string
	opt Options

	transport *http.Transport // of the client; nil if this process owns the folder since Open

	mu     sync.Mutex // held while this process tries to own the folder
	own    *db.DB     // nil while another process owns it
	owner  *Owner     // serves own; nil if own is open for reading only
	inside *pipes     // leads to own, for the client of this process; nil before it has taken over
	closed bool
}

// Open opens the database in a folder, or attaches to the process that has it open.
func Open(ctx context.Context, dir string, opt Options) (*Database, error) {
	if opt.Wait == 0 {
		opt.Wait = 10 * time.Second
	}
	a := &attachment{dir: dir, opt: opt}
	switch err := a.open(); {
	case err == nil:
		return &Database{api.Folder(a.own, opt.Stores), a}, nil
	case !errors.Is(err, db.ErrLocked):
		return nil, err
	}
	// The first connection shows whether anybody serves the folder. The owner may end meanwhile.
	conn, err := a.dial(ctx)
	switch {
	case err != nil:
		return nil, reason(err)
	case a.own != nil:
		_ = conn.Close()
		return &Database{api.Folder(a.own, opt.Stores), a}, nil
	}
	_ = conn.Close()
	a.transport = &http.Transport{
		DialContext:         func(ctx context.Context, _, _ string) (net.Conn, error) { return a.dial(ctx) },
		MaxIdleConnsPerHost: 64, DisableCompression: true, IdleConnTimeout: time.Minute}
	remote, err := client.Open("http://owner/"+name, client.Options{Patience: 30 * time.Second,
		Transport: a.transport})
	if err != nil {
		return nil, errors.Join(err, a.close())
	}
	return &Database{remote, a}, nil
}

// Own returns the database if this process has owned it since Open; nil if it is attached.
func (d *Database) Own() *db.DB {
	if _, attached := d.Database.(*client.Database); attached {
		return nil
	}
	return d.at.own
}

// Close detaches, or ends serving and closes the database.
func (d *Database) Close() error {
	var err error
	if d.Own() == nil {
		err = d.Database.Close()
		d.at.transport.CloseIdleConnections()
	}
	return errors.Join(err, d.at.close())
}

// open opens the folder, and serves it. The caller holds mu, or is alone.
func (a *attachment) open() error {
	d, err := db.Open(a.dir, a.opt.DB)
	if err != nil {
		return err
	}
	a.own = d
	if a.opt.DB == nil || !a.opt.DB.ReadOnly {
		// A folder that cannot have a socket is used without one, as others wait for its lock.
		a.owner, _ = Serve(d, a.dir, a.opt.Stores)
	}
	return nil
}

func (a *attachment) close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	var err error
	if a.inside != nil {
		err = a.inside.close()
	}
	if a.owner != nil {
		err = errors.Join(err, a.owner.Close())
	}
	if a.own != nil {
		err = errors.Join(err, a.own.Close())
	}
	return err
}

// dialError returns an error of dial after which the same request may be sent: nothing has been sent yet.
func dialError(err error) error { return &net.OpError{Op: "dial", Net: "unix", Err: err} }

// reason returns the error of dial without what is for package client.
func reason(err error) error {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return op.Err
	}
	return err
}

// dial connects to the owner. If nobody owns the folder, this process does from now on.
func (a *attachment) dial(ctx context.Context) (net.Conn, error) {
	deadline := time.Now().Add(a.opt.Wait)
	pause := time.Millisecond
	for {
		conn, err := a.try(ctx)
		if err == nil {
			return conn, nil
		}
		if !errors.Is(err, db.ErrLocked) {
			return nil, err
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("%w: the process that has %s open serves nobody", db.ErrLocked, a.dir)
		}
		select {
		case <-time.After(pause):
			pause = min(2*pause, 50*time.Millisecond)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// try connects to the owner, or tries to own the folder. A db.ErrLocked says that another process owns it and
// does not serve it, or not yet.
func (a *attachment) try(ctx context.Context) (net.Conn, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil, db.ErrClosed
	}
	if a.inside != nil {
		return a.inside.dial()
	}
	conn, err := connect(ctx, a.dir)
	if err == nil || !errors.Is(err, errNobody) {
		return conn, err
	}
	if err := a.open(); err != nil {
		return nil, err
	}
	a.inside = newPipes(a.own, a.opt.Stores)
	return a.inside.dial()
}
