package attach

import (
	"context"
	"errors"
	"io"
	"log"
	"math"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
	"github.com/fddhdb/fddhdb/db/serve"
)

// name is the name of the database in paths.
const name = "db"

// grace is how long requests have to end when an owner closes. Jobs are cancelled at once. It is less than
// the time after which a signal ends the command line.
const grace = 3 * time.Second

// An Owner serves a database to the other processes of its user.
type Owner struct {
	server *serve.Server
	http   *http.Server
	socket *socket
	once   sync.Once
	err    error
}

// Serve serves the database d in the folder dir to processes that attach to it, until Close. The database is
// open for writing, on the file system of the operating system. Call Close before you close the database.
// stores opens places of backups; with nil there are none.
func Serve(d *db.DB, dir string, stores api.OpenStore) (*Owner, error) {
	s, err := newServer(d, stores)
	if err != nil {
		return nil, err
	}
	l, err := listen(dir)
	if err != nil {
		return nil, err
	}
	o := &Owner{server: s, http: newHTTP(s), socket: l}
	go func() { _ = o.http.Serve(l) }()
	return o, nil
}

// newServer returns a server that allows all requests: only the user of this process can reach it.
func newServer(d *db.DB, stores api.OpenStore) (*serve.Server, error) {
	return serve.New(map[string]api.Database{name: api.Folder(d, stores)}, serve.Options{
		MaxBody: 1 << 30, MaxK: math.MaxInt32, Timeout: 365 * 24 * time.Hour})
}

func newHTTP(h http.Handler) *http.Server {
	return &http.Server{Handler: h, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0)}
}

// Close refuses new requests, waits up to 3 seconds for those under way, and removes the socket.
func (o *Owner) Close() error {
	o.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), grace)
		defer cancel()
		// As long as the folder is locked, requests that come are refused. Their senders try the next owner.
		err := o.server.Shutdown(ctx)
		o.err = errors.Join(err, o.socket.withdraw(), o.http.Close())
	})
	return o.err
}

// pipes are connections within this process, of a client to a server.
type pipes struct {
	conns  chan net.Conn
	done   chan struct{}
	once   sync.Once
	server *serve.Server
	http   *http.Server
}

// newPipes serves a database within this process.
func newPipes(d *db.DB, stores api.OpenStore) (*pipes, error) {
	s, err := newServer(d, stores)
	if err != nil {
		return nil, err
	}
	p := &pipes{conns: make(chan net.Conn), done: make(chan struct{}), server: s, http: newHTTP(s)}
	go func() { _ = p.http.Serve(p) }()
	return p, nil
}

func (p *pipes) dial() (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		return ours, nil
	case <-p.done:
		return nil, db.ErrClosed
	}
}

// Accept, Close and Addr implement net.Listener.
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "inside", Net: "unix"} }

func (p *pipes) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	return errors.Join(p.server.Shutdown(ctx), p.http.Close())
}
