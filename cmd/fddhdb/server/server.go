// Package server serves databases, and the page that shows them, by HTTP for a command: its flags, tokens and
// certificate, the programs that make vectors, and its end.
//
// It reads the files that its flags name, and opens a port. Run ends with its context.
package server

import (
	"context"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/spf13/pflag"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/picture"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/python"
	"github.com/fddhdb/fddhdb/db/api"
	"github.com/fddhdb/fddhdb/db/serve"
	"github.com/fddhdb/fddhdb/db/serve/page"
)

// Grace is the time after a signal in which a server has ended.
const Grace = 12 * time.Second

// Flags say how to serve.
type Flags struct {
	Address           string
	ReadOnly          bool   // requests look only, whoever sends them and whoever owns the database
	Secret            string // a token that every request needs, and that may do everything; "": see tokens
	tokens, cert, key string
	plain             bool
	maxK, bodyMiB     uint
	rate              float64
	timeout           time.Duration
	origins           []string
	pictures          string
}

// Register adds the flags.
func (o *Flags) Register(f *pflag.FlagSet) {
	f.StringVar(&o.Address, "address", "127.0.0.1:7070", "serve on `HOST:PORT`; port 0 is a free one")
	f.StringVar(&o.tokens, "tokens", "", "ask for the tokens of `FILE`, see fddhdb token")
	f.StringVar(&o.cert, "cert", "", "the certificate of the server, a `FILE`.pem")
	f.StringVar(&o.key, "cert-key", "", "the key of the certificate, a `FILE`.pem")
	o.RegisterPage(f)
	f.BoolVar(&o.plain, "plain", false, "serve another address without TLS: a proxy in front has it")
	f.UintVar(&o.maxK, "max-k", 10_000, "the largest number `N` of hits of an answer")
	f.UintVar(&o.bodyMiB, "max-body", 64, "the largest body of a request, in `MIB`; imports are not bounded")
	f.StringArrayVar(&o.origins, "origin", nil,
		"let pages of the site `URL` send requests; repeat it for each")
	f.Float64Var(&o.rate, "rate", 0, "the most requests a second of each token, `N` (default: no bound)")
	f.DurationVar(&o.timeout, "timeout", time.Minute,
		"the longest `TIME` of a request that is no import, export or job")
}

// RegisterPage adds the flags of what the page shows.
func (o *Flags) RegisterPage(f *pflag.FlagSet) {
	f.StringVar(&o.pictures, "pictures", "",
		"show the pictures below the folder `DIR` that items name in a field or by their key")
}

// Check checks that flags go together.
func (o *Flags) Check() error {
	_, port, err := net.SplitHostPort(o.Address)
	local := serve.IsLoopback(o.Address)
	switch {
	case err != nil || port == "":
		return exit.Usagef("--address %q: HOST:PORT is expected, such as 127.0.0.1:7070 or :7070", o.Address)
	case (o.cert == "") != (o.key == ""):
		return exit.Usagef("--cert and --cert-key go together: one of them is missing")
	case !local && o.tokens == "":
		return exit.Usagef("--address %s can be reached from other machines: --tokens FILE says who may do what (fddhdb token makes it)", o.Address)
	case !local && o.cert == "" && !o.plain:
		return exit.Usagef("--address %s can be reached from other machines: --cert and --cert-key protect tokens and data on the way, or --plain says that a proxy in front of it does", o.Address)
	case len(o.origins) > 0 && o.tokens == "":
		return exit.Usagef("--origin lets pages of other sites send requests: --tokens FILE says who may do what")
	case o.rate < 0:
		return exit.Usagef("--rate %v: 0 or more is possible", o.rate)
	case o.timeout <= 0:
		return exit.Usagef("--timeout %v: a time above 0 is expected", o.timeout)
	case o.maxK == 0 || o.bodyMiB < 16 || o.bodyMiB > 1<<20:
		return exit.Usagef("--max-k is 1 or more, and --max-body 16 to a million: verbs send parts of 8 MiB")
	}
	return nil
}

// Files are the tokens and the certificate of a server.
type Files struct {
	flags       *Flags
	tokens      serve.Tokens
	certificate serve.Certificate
}

// Load reads the files, or reads them again. What cannot be read stays as it was.
func (f *Files) Load() error {
	var err error
	if f.flags.tokens != "" {
		if err = f.tokens.Load(f.flags.tokens); errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%w: fddhdb token %s --name NAME makes it", err, f.flags.tokens)
		}
	}
	if f.flags.cert != "" {
		err = errors.Join(err, f.certificate.Load(f.flags.cert, f.flags.key))
	}
	if err != nil {
		return exit.Failedf("%w", err)
	}
	return nil
}

// Open reads the files that the flags name.
func (o *Flags) Open() (*Files, error) {
	f := &Files{flags: o}
	return f, f.Load()
}

// A Config is what a server serves.
type Config struct {
	Databases map[string]api.Database // by their names in URLs
	Encoders  Encoders                // nil: nobody makes vectors of texts and files
	Log       io.Writer

	// Beside, if not nil, returns the handler of all requests, which passes on to others what is not its own.
	Beside func(s *serve.Server, others http.Handler) (http.Handler, error)

	// Ready is called with the URL of the server when it answers.
	Ready func(url string, names []string) error
}

// Run serves databases, and the page that shows them, until the context ends.
func (f *Files) Run(ctx context.Context, config Config) error {
	o := f.flags
	version := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		version = info.Main.Version
	}
	opt := serve.Options{MaxK: int(min(o.maxK, 1<<30)), MaxBody: int64(o.bodyMiB) << 20, Rate: o.rate,
		Timeout: o.timeout, Origins: o.origins, Version: version,
		Encoder: config.Encoders, Decode: picture.Decode,
		Details: o.tokens == "", // whoever is on this machine
		Logger:  slog.New(slog.NewTextHandler(config.Log, nil))}
	pictures, err := picture.OpenFolder(o.pictures,
		func(head []byte) bool { return serve.PictureType(head) != "" })
	if err != nil {
		return err
	}
	if pictures != nil {
		defer pictures.Close()
		opt.Pictures = pictures
	}
	if o.tokens != "" {
		opt.Access = f.tokens.Access
	}
	if who := opt.Access; o.ReadOnly {
		opt.Access = func(r *http.Request) (*serve.Access, error) {
			a := &serve.Access{}
			if who != nil {
				known, err := who(r)
				if err != nil {
					return nil, err
				}
				*a = *known
			}
			a.Scope = serve.Read
			return a, nil
		}
	}
	s, err := serve.New(config.Databases, opt)
	if err != nil {
		return err
	}
	h := page.Handler(s)
	if config.Beside != nil {
		if h, err = config.Beside(s, h); err != nil {
			return err
		}
	}
	if o.tokens == "" {
		h = serve.Local(h)
	}
	h = withClient(h)
	if o.Secret != "" {
		h = withSecret(h, o.Secret)
	}
	l, err := net.Listen("tcp", o.Address)
	if err != nil {
		return exit.Failedf("--address %s: %w: give another port, or 0 for a free one", o.Address, err)
	}
	scheme, secure := "http", (*tls.Config)(nil)
	if o.cert != "" {
		scheme, secure = "https", f.certificate.Config()
	}
	// Requests that wait for a program are to end with the server.
	defer context.AfterFunc(ctx, config.Encoders.Close)()
	if err := config.Ready(scheme+"://"+l.Addr().String(), s.Names()); err != nil {
		return errors.Join(err, l.Close())
	}
	return serve.Serve(ctx, s, h, l, secure)
}

// withClient serves the client for Python beside a handler. Whoever can reach the server gets it.
func withClient(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == python.Path && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
			python.ServeHTTP(w, r)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// withSecret lets requests with a token through to a handler, and no others. The handler then knows every
// sender as one that may do everything, and tells it all that errors say.
func withSecret(h http.Handler, secret string) http.Handler {
	want := []byte("Bearer " + secret)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), want) != 1 {
			http.Error(w, "this server is for the program that has started it", http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	})
}
