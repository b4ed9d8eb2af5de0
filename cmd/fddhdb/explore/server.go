package explore

import (
	"context"
	"errors"
	"net"
	"net/http"
	"runtime"
	"time"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/picture"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/files"
)

// Options are the settings of a server besides the database.
type Options struct {
	Name     string    // of the database, for people
	Version  string    // of the program
	Encoders []Encoder // at most one for each collection and modality

	// Pictures has files of pictures that items name; nil: none. IsPicture tells them. The caller closes
	// it after the server.
	Pictures *picture.Folder

	// OpenVectors opens a file of vectors by its extension.
	OpenVectors func(path string) (*files.Vectors, error)

	// Message returns the text of an error for people. Report is called with faults of
	// the server, from any goroutine.
	Message func(error) string
	Report  func(fault string)
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
// fields do not change after New; uploads and encodings have locks of their own.
type Server struct {
	db      *db.DB
	opt     Options
	page    map[string]asset    // by path
	api     map[string]endpoint // by path
	uploads uploads

	encodings map[encoderOf]*encoding

	requestTime time.Duration

	computing *room // for requests that need a processor
}

// New returns a server of an open database. The caller closes the server before the
// database.
func New(d *db.DB, opt Options) (*Server, error) {
	page, err := loadPage()
	if err != nil {
		return nil, err
	}
	s := &Server{
		db: d, opt: opt, page: page, encodings: map[encoderOf]*encoding{}, requestTime: requestTime,
		computing: newRoom(2 * runtime.GOMAXPROCS(0)),
	}
	s.uploads.open, s.uploads.receiving = opt.OpenVectors, newRoom(maxReceiving)
	for _, e := range opt.Encoders {
		s.encodings[encoderOf{e.Collection, e.Modality, e.Input}] = newEncoding(e)
	}
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
	for _, e := range s.encodings {
		e.Close()
	}
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
