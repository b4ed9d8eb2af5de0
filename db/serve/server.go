package serve

import (
	"context"
	"image"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/gzhttp"

	"github.com/fddhdb/fddhdb/db/api"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/internal/rest"
)

// Errors for Options.Access, besides those of package db.
var (
	ErrUnauthorized = rest.ErrUnauthorized // nobody is known to send the request: the status is 401
	ErrForbidden    = rest.ErrForbidden    // the sender may not do this: 403
)

// Options are the settings of a server. The zero value is for requests that may do everything.
type Options struct {
	// Access says who sends a request; nil lets everybody do everything. An error refuses the request.
	Access func(r *http.Request) (*Access, error)

	// Details gives senders that Access knows the texts of all errors. They may name paths of this machine,
	// and have what the programs of encoders have written. Without Details such texts go to Logger alone,
	// unless Access is nil.
	Details bool

	// MaxBody bounds the body of a request that is read as a whole, in bytes; 0 means 64 MiB. Bodies of
	// imports are read in parts, and may be of any size.
	MaxBody int64

	// MaxK bounds the hits of an answer; 0 means 10,000.
	MaxK int

	// Requests bounds how many requests work at a time; 0 means 4 for each processor. 16 times as many may
	// wait, and 8 times as many may be streams: imports, exports and followed jobs, whose parts work one at a
	// time. The others are refused with 429.
	Requests int

	// Timeout bounds the time of a request that is not an import, an export or a job; 0 means a minute.
	Timeout time.Duration

	// Rate bounds the requests a second of each sender, by the name of its Access; 0 means no bound.
	Rate float64

	// Origins are the sites, such as https://photos.example.org, whose pages may send requests from a browser.
	// Access has to know the senders, as a browser sends what any page tells it.
	Origins []string

	// Encoder makes vectors of texts and files; nil: nobody does.
	Encoder Encoder

	// Decode decodes a picture, so that its code, by the hash of a collection, can be a query. It bounds the
	// pixels. An error refuses the picture. nil: nobody does.
	Decode func(content io.ReadSeeker) (image.Image, error)

	// Pictures finds the pictures of items that are files; nil: nobody does.
	Pictures Pictures

	// Logger gets faults of the server: panics, and answers with the status 500. nil: nothing.
	Logger *slog.Logger

	Version string // of the program, for /openapi.json
}

// A Server is an http.Handler for databases.
type Server struct {
	databases map[string]api.Database
	opt       Options
	routes    *router
	places    chan struct{}
	joins     chan struct{} // the one place of :pairs and :groups
	decoding  chan struct{} // has the pictures that are decoded now, one for each processor
	waiting   atomic.Int32
	streams   atomic.Int32 // requests that take no place
	held      atomic.Int64 // bytes of bodies in memory
	jobs      jobs
	ready     readiness
	metrics   *metrics

	compressed http.Handler // serve, with answers compressed
	pacers     sync.Map     // *rate.Limiter by the name of an Access

	ends    context.Context // ends when the server takes no new work
	end     context.CancelFunc
	working sync.WaitGroup // requests and jobs
	mu      sync.RWMutex   // held for reading while working grows, so that Shutdown sees what has begun
}

// New returns a server of databases by name. The names stand in paths: they have no slash and no colon. The
// caller closes the databases, after Shutdown.
func New(databases map[string]api.Database, opt Options) (*Server, error) {
	for name := range databases {
		if name == "" || strings.ContainsAny(name, "/:\\") || name == "." || name == ".." {
			return nil,
				fault.Invalid("the name %q of a database: it stands in paths, so it has no slash and no colon",
					name)
		}
	}
	if opt.MaxBody < 0 || opt.MaxK < 0 || opt.Requests < 0 || opt.Timeout < 0 {
		return nil, fault.Invalid("a limit of a server is negative")
	}
	if opt.MaxBody == 0 {
		opt.MaxBody = 64 << 20
	}
	opt.MaxBody = min(opt.MaxBody, 1<<40)
	if opt.MaxK == 0 {
		opt.MaxK = 10_000
	}
	if opt.Requests == 0 {
		opt.Requests = 4 * runtime.GOMAXPROCS(0)
	}
	if opt.Timeout == 0 {
		opt.Timeout = time.Minute
	}
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{databases: maps.Clone(databases), opt: opt, places: make(chan struct{}, opt.Requests),
		joins:    make(chan struct{}, 1),
		decoding: make(chan struct{}, runtime.GOMAXPROCS(0))}
	s.ends, s.end = context.WithCancel(context.Background())
	s.jobs.byID = map[string]*job{}
	compress, err := gzhttp.NewWrapper(gzhttp.MinSize(2048),
		gzhttp.ContentTypes([]string{"application/json", ndjson, "text/plain"}))
	if err != nil {
		return nil, err
	}
	s.compressed = compress(http.HandlerFunc(s.serve))
	s.metrics = s.newMetrics()
	s.routes = s.register()
	return s, nil
}

// Names returns the names of the databases, in order.
func (s *Server) Names() []string { return slices.Sorted(maps.Keys(s.databases)) }

// Shutdown refuses new requests, and waits until those that work have ended, or the context has. Jobs are
// cancelled at once: each gives back what it has begun, as package db does.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.end()
	s.mu.Unlock()
	s.jobs.cancelAll()
	ended := make(chan struct{})
	go func() {
		s.working.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// begin counts a request or a job that begins, unless the server is closing. The caller calls
// s.working.Done.
func (s *Server) begin() error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	select {
	case <-s.ends.Done():
		return rest.ErrClosing
	default:
		s.working.Add(1)
		return nil
	}
}

// bodies is how many of the largest bodies may be in memory at a time.
const bodies = 16

// waitingPerPlace is how many requests may wait for each place.
const waitingPerPlace = 16

// streamsPerPlace is how many requests there may be for each place that take none themselves.
const streamsPerPlace = 8

// enter takes one of the places of requests that work; the caller gives it back by leave.
func (s *Server) enter(ctx context.Context) error {
	select {
	case s.places <- struct{}{}:
		return nil
	default:
	}
	if int(s.waiting.Add(1)) > waitingPerPlace*cap(s.places) {
		s.waiting.Add(-1)
		return rest.ErrOverloaded
	}
	defer s.waiting.Add(-1)
	return s.wait(ctx)
}

// wait is enter for a part of a request that has begun: it is not refused because many others wait.
func (s *Server) wait(ctx context.Context) error {
	select {
	case s.places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-s.ends.Done():
		return rest.ErrClosing
	}
}

func (s *Server) leave() { <-s.places }
