package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/fddhdb/fddhdb/internal/rest"
)

// Times of a connection.
const (
	headerTime = 5 * time.Second // for the head of a request to come
	idleTime   = 2 * time.Minute // between requests
	graceTime  = 5 * time.Second // for requests to end when the server does
)

// Serve answers on a listener until the context ends: by HTTP/1.1 and HTTP/2, with TLS if config is not nil.
// Then it takes no more requests, and those that work have five seconds to end. It returns nil if only the
// context has ended it.
func Serve(ctx context.Context, s *Server, h http.Handler, l net.Listener, config *tls.Config) error {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	web := &http.Server{Handler: h, TLSConfig: config, Protocols: protocols, ReadHeaderTimeout: headerTime,
		IdleTimeout: idleTime, MaxHeaderBytes: 64 << 10, ErrorLog: log.New(io.Discard, "", 0)}
	ended := make(chan error, 1)
	go func() {
		if config != nil {
			ended <- web.ServeTLS(l, "", "")
		} else {
			ended <- web.Serve(l)
		}
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), graceTime)
	defer cancel()
	err := s.Shutdown(grace)
	if errors.Is(err, context.DeadlineExceeded) {
		err = nil // the connections of those that work still are cut: their clients learn nothing
	}
	err = errors.Join(err, web.Close())
	<-ended
	return err
}

// A Certificate is a certificate with its key, in files that Load reads again.
type Certificate struct {
	now atomic.Pointer[tls.Certificate]
}

// Load reads the files, in PEM. After an error the certificate stays as it was.
func (c *Certificate) Load(certFile, keyFile string) error {
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err == nil {
		c.now.Store(&pair)
	}
	return err
}

// Config returns the configuration of a server with the certificate.
func (c *Certificate) Config() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.now.Load(), nil }}
}

// pace refuses a request that comes faster than Options.Rate allows its sender.
func (s *Server) pace(a *Access) error {
	if s.opt.Rate <= 0 {
		return nil
	}
	limit, _ := s.pacers.LoadOrStore(a.Name, rate.NewLimiter(rate.Limit(s.opt.Rate), int(max(1, s.opt.Rate))))
	if limit.(*rate.Limiter).Allow() {
		return nil
	}
	return rest.ErrOverloaded
}
