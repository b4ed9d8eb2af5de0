package explore

import (
	"context"
	"errors"
	"net"
	"net/http"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/encoder"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/picture"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/serve"
	"github.com/fddhdb/fddhdb/db/serve/page"
)

// Options are the settings of a server besides the database.
type Options struct {
	Name     string           // of the database, for people
	Version  string           // of the program
	Encoders []encoder.Stored // at most one for each collection, modality and input

	// Pictures has files of pictures that items name; nil: none. IsPicture tells them. The caller closes
	// it after the server.
	Pictures *picture.Folder

	// Report is called with faults of the server, from any goroutine.
	Report func(fault string)
}

// Limits of a request.
const (
	maxK          = 1000     // hits of an answer, or items of a list
	maxText       = 16 << 10 // bytes of a text for an encoder
	maxUpload     = 64 << 20 // bytes of a file of vectors
	maxPicture    = picture.MaxBytes
	keptUploads   = 4           // number of files of vectors and pictures that are kept
	maxReceiving  = 16          // files that may arrive at the same time
	requestTime   = time.Minute // limit for an answer, without the time of encoders
	receiveTime   = time.Minute // limit for a request to arrive, with its file
	writeTime     = 30 * time.Second
	shutdownGrace = 2 * time.Second
)

// A Server answers requests about one database. It is safe for concurrent use. Its
// fields do not change after New; uploads and encoders have locks of their own.
type Server struct {
	db      *db.DB
	opt     Options
	page    http.Handler
	api     map[string]endpoint // by path
	uploads uploads

	encoders *encoder.Pool

	requestTime time.Duration

	computing *room // for requests that need a processor
}

// New returns a server of an open database. The caller closes the server before the
// database.
func New(d *db.DB, opt Options) (*Server, error) {
	s := &Server{
		db: d, opt: opt, encoders: encoder.NewPool(opt.Encoders), requestTime: requestTime,
		computing: newRoom(2 * runtime.GOMAXPROCS(0)),
	}
	s.page = page.Handler(http.HandlerFunc(s.serveAPI))
	s.uploads.receiving = newRoom(maxReceiving)
	s.api = map[string]endpoint{
		"/api/database":    {compute: s.database},
		"/api/collections": {compute: s.collections},
		"/api/labels":      {compute: s.labels},
		"/api/search":      {get: s.search},
		"/api/histogram":   {get: s.histogram},
		"/api/facets":      {get: s.facets},
		"/api/plans":       {compute: s.plans},
		"/api/item":        {compute: s.item},
		"/api/items":       {compute: s.items},
		"/api/media":       {compute: s.media},
		"/api/models":      {compute: s.models},
		"/api/stats":       {compute: s.stats},
		"/api/uploads":     {post: s.upload},
	}
	return s, nil
}

// Close ends running encoders, and removes uploads.
func (s *Server) Close() error {
	s.encoders.Close()
	return s.uploads.close()
}

// Serve answers on a listener until the context ends, and closes the listener. Requests
// that are running then have two seconds. It returns nil if only the context has ended
// it.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       receiveTime,
		WriteTimeout:      requestTime + writeTime,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          discard,
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownGrace)
	defer cancel()
	err := server.Shutdown(grace)
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close()
	}
	<-ended
	return err
}

// maxWaiting is the number of requests that may wait for a place in one room.
const maxWaiting = 64

// A room bounds the number of requests that do one kind of work at a time. A request
// takes a place, and waits if all are taken. Each kind has its own room, so requests
// that wait for an encoder or a slow sender leave the processors to the others. To
// avoid deadlock, no request waits for one room while it holds a place that the holders
// of that room need: the computing room is entered last. It is safe for concurrent use.
type room struct {
	places  chan struct{} // one element for each taken place
	waiting atomic.Int32  // waiting requests
}

func newRoom(places int) *room { return &room{places: make(chan struct{}, places)} }

// enter takes a place, which the caller gives back with leave. It fails if too many
// requests wait already, and when the context ends.
func (r *room) enter(ctx context.Context) error {
	select {
	case r.places <- struct{}{}:
		return nil
	default:
	}
	if r.waiting.Add(1) > maxWaiting {
		r.waiting.Add(-1)
		return statusErrorf(http.StatusServiceUnavailable,
			"too many requests at a time: ask again when some are answered")
	}
	defer r.waiting.Add(-1)
	select {
	case r.places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *room) leave() { <-r.places }

// protect sets the headers of every answer: load nothing from elsewhere, in no frame,
// with the declared type only, and unusable for other sites.
func protect(h http.Header) {
	h.Set("Content-Security-Policy",
		"default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
}

// CheckAddress returns an error unless an address, HOST:PORT, can be reached from this
// machine only.
func CheckAddress(address string) error {
	_, _, err := net.SplitHostPort(address)
	switch {
	case err != nil:
		return badRequest("HOST:PORT is expected, such as 127.0.0.1:8080")
	case !serve.IsLoopback(address):
		return badRequest("only this machine is served, at 127.0.0.1, ::1 or localhost, as whoever reaches the page reads everything; from elsewhere go through ssh -L")
	}
	return nil
}
