// Package explore shows a database in the browser: a page to search it and to look at its
// models and figures, and the same as JSON under /api. docs/EXPLORE.md describes both.
//
// It is for one person on one machine. It reads, and changes nothing; whoever reaches the
// port reads as much, so that it belongs on a loopback address. What a browser sends on
// behalf of other sites is refused (guard.go), and nothing on the page comes from elsewhere.
package explore

import (
	"context"
	"errors"
	"net"
	"net/http"
	"runtime"
	"time"

	"github.com/fddhdb/fddhdb/codec/vecfile"
	"github.com/fddhdb/fddhdb/db"
)

// Options say what a server shows besides the database.
type Options struct {
	Name     string    // of the database, as people know it
	Version  string    // of the program
	Encoders []Encoder // programs that make vectors of text, at most one a modality

	// OpenVectors opens a file of vectors by its extension.
	OpenVectors func(path string) (vecfile.Reader, error)

	// Message words an error for people. Report tells whoever has started the server of a
	// fault of it, from any goroutine.
	Message func(error) string
	Report  func(fault string)
}

// Limits of what one request may ask for.
const (
	maxK          = 1000        // hits of an answer, or items of a list
	maxText       = 16 << 10    // bytes of a text for an encoder
	maxUpload     = 64 << 20    // bytes of a file of vectors
	keptUploads   = 4           // files of vectors that are kept, the latest
	maxReceiving  = 16          // files of vectors that arrive at the same time
	requestTime   = time.Minute // and what an encoder takes
	receiveTime   = time.Minute // for a request to arrive, with its file
	writeTime     = 30 * time.Second
	shutdownGrace = 2 * time.Second
)

// A Server answers requests about one database. Safe for concurrent use.
type Server struct {
	db      *db.DB
	opt     Options
	page    map[string]asset // by path
	api     map[string]endpoint
	encode  map[string]*encoder // by modality
	uploads uploads

	requestTime time.Duration

	computing *room // for requests that need a processor
}

// New returns a server of an open database, which the caller closes after the server.
func New(d *db.DB, opt Options) (*Server, error) {
	page, err := loadPage()
	if err != nil {
		return nil, err
	}
	s := &Server{
		db: d, opt: opt, page: page, encode: map[string]*encoder{}, requestTime: requestTime,
		computing: newRoom(2 * runtime.GOMAXPROCS(0)),
	}
	s.uploads.open, s.uploads.receiving = opt.OpenVectors, newRoom(maxReceiving)
	for _, e := range opt.Encoders {
		s.encode[e.Modality] = newEncoder(e)
	}
	s.api = map[string]endpoint{
		"/api/database":    {compute: s.database},
		"/api/collections": {compute: s.collections},
		"/api/labels":      {compute: s.labels},
		"/api/search":      {get: s.search},
		"/api/histogram":   {get: s.histogram},
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

// Close ends the encoders that run, and removes what was uploaded.
func (s *Server) Close() error {
	var err error
	for _, e := range s.encode {
		err = errors.Join(err, e.close())
	}
	return errors.Join(err, s.uploads.close())
}

// Serve answers on a listener, which it closes, until the context ends; then what is
// going on has two seconds. It returns nil where nothing but the context ended it.
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
