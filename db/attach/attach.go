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
	// DB are the options with which this process opens the database if it owns it, now or later. Through
	// another owner the options of that one hold, ReadOnly included.
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
	alone  error      // why own is served to nobody
	inside *pipes     // leads to own, for the client of this process; nil before it has taken over
	closed bool
}

// Open opens the database in a folder, or attaches to the process that has it open.
func Open(ctx context.Context, dir string, opt Options) (*Database, error) {
	if opt.Wait == 0 {
		opt.Wait = 10 * time.Second
	}
	a := &attachment{dir: dir, opt: opt}
	switch err := a.open(opt.DB); {
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
	remote, err := client.Open("http://owner/"+name, client.Options{Patience: 30 * time.Second, Place: "the process that had the database open",
		Transport: a.transport})
	if err != nil {
		return nil, errors.Join(err, a.close())
	}
	return &Database{remote, a}, nil
}

// Own returns the database if this process owns it now; nil if it is attached. It owns it from Open on, or
// has taken it over.
func (d *Database) Own() *db.DB {
	d.at.mu.Lock()
	defer d.at.mu.Unlock()
	return d.at.own
}

// Alone returns why a database that this process owns is served to no other process, if that has failed.
func (d *Database) Alone() error {
	d.at.mu.Lock()
	defer d.at.mu.Unlock()
	return d.at.alone
}

// Close detaches, or ends serving and closes the database.
func (d *Database) Close() error {
	var err error
	if d.at.transport != nil {
		err = d.Database.Close()
		d.at.transport.CloseIdleConnections()
	}
	return errors.Join(err, d.at.close())
}

// open opens the folder, and serves it. The caller holds mu, or is alone.
func (a *attachment) open(o *db.Options) error {
	d, err := db.Open(a.dir, o)
	if err != nil {
		return err
	}
	a.own = d
	if o == nil || !o.ReadOnly {
		// Where no socket is possible others wait until the folder is free.
		a.owner, a.alone = Serve(d, a.dir, a.opt.Stores)
	}
	return nil
}

func (a *attachment) close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	var ends sync.WaitGroup
	var inside, owner error
	if a.inside != nil {
		ends.Go(func() { inside = a.inside.close() })
	}
	if a.owner != nil {
		ends.Go(func() { owner = a.owner.Close() })
	}
	ends.Wait()
	err := errors.Join(inside, owner)
	if a.own != nil {
		err = errors.Join(err, a.own.Close())
	}
	return err
}

// dialError returns an error of dial after which the same request may be sent: nothing has been sent yet.
func dialError(err error) error { return &net.OpError{Op: "dial", Net: "unix", Err: err} }

// reason returns the error of dial without the mark of dialError.
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
			return nil, dialError(fmt.Errorf(
				"%w: the process that has %s open serves nobody, and perhaps only reads", db.ErrLocked, a.dir))
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
	// What was a database when this process attached is not made once more if somebody has removed it.
	var o db.Options
	if a.opt.DB != nil {
		o = *a.opt.DB
	}
	o.MustExist = true
	if err := a.open(&o); err != nil {
		return nil, err
	}
	p, err := newPipes(a.own, a.opt.Stores)
	if err != nil {
		return nil, err // Close closes the database
	}
	a.inside = p
	return p.dial()
}
