package serve

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/fddhdb/fddhdb/internal/rest"
)

// A Scope says what a request may do. Each scope includes those before it.
type Scope int

// Scopes. Read looks at a database; Write changes items and lets collections learn; Admin creates, alters and
// drops collections, makes backups and compacts.
const (
	Read Scope = iota + 1
	Write
	Admin
)

var scopeNames = [...]string{Read: "read", Write: "write", Admin: "admin"}

// String returns the name of the scope.
func (s Scope) String() string {
	if s < Read || s > Admin {
		return "none"
	}
	return scopeNames[s]
}

// An Access says what the sender of a request may do.
type Access struct {
	Name  string // of the sender, for logs
	Scope Scope

	// Collections, if not empty, are the only collections that the sender may see, in all databases, or as
	// DATABASE/COLLECTION in one. What is about a whole database is then forbidden.
	Collections []string
}

// in returns the access to a database, with plain names of collections.
func (a *Access) in(database string) *Access {
	if !slices.ContainsFunc(a.Collections, func(name string) bool { return strings.Contains(name, "/") }) {
		return a
	}
	own := *a
	own.Collections = []string{"/"} // no collection has this name
	for _, name := range a.Collections {
		if of, collection, qualified := strings.Cut(name, "/"); !qualified {
			own.Collections = append(own.Collections, name)
		} else if of == database {
			own.Collections = append(own.Collections, collection)
		}
	}
	return &own
}

// knows reports whether the access is for anything in a database.
func (a *Access) knows(database string) bool {
	return len(a.Collections) == 0 || !slices.Equal(a.in(database).Collections, []string{"/"})
}

// everybody is the access of all senders if Options.Access is nil.
var everybody = &Access{Scope: Admin}

// allowed returns the access of the sender of a request, if it has the scope of the route.
func (s *Server) allowed(r *http.Request, o *route) (*Access, error) {
	if o.scope == 0 || s.opt.Access == nil {
		return everybody, nil
	}
	a, err := s.opt.Access(r)
	if err != nil {
		return nil, err
	}
	if a == nil {
		return nil, rest.ErrUnauthorized
	}
	return a, nil
}

// permits returns why the access is not for a route, or not for its collection.
func (a *Access) permits(o *route, collection string) error {
	whole := !strings.Contains(o.path, "{collection}")
	switch {
	case a.Scope < o.scope:
		return fmt.Errorf("%w: the token has the scope %s, and this needs %s", rest.ErrForbidden, a.Scope,
			o.scope)
	case whole && len(a.Collections) > 0 && !o.forEach:
		return fmt.Errorf("%w: the token is for some collections, and this is about the database",
			rest.ErrForbidden)
	case !whole && !a.sees(collection):
		return fmt.Errorf("%w: the token is for other collections", rest.ErrForbidden)
	}
	return nil
}

// sees reports whether the access is for a collection; "" is a whole database.
func (a *Access) sees(collection string) bool {
	return len(a.Collections) == 0 || slices.Contains(a.Collections, collection)
}

// crossOrigin lets pages of Options.Origins send requests. It reports whether it has answered: a browser asks
// first what it may send.
func (s *Server) crossOrigin(w http.ResponseWriter, r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if len(s.opt.Origins) == 0 || origin == "" {
		return false
	}
	h := w.Header()
	h.Add("Vary", "Origin")
	if !slices.Contains(s.opt.Origins, origin) {
		return false
	}
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", "ETag, Location, Retry-After")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	h.Set("Access-Control-Allow-Methods", strings.Join(methods, ", "))
	h.Set("Access-Control-Allow-Headers",
		"Authorization, Content-Type, Content-Encoding, Accept, If-Match, If-None-Match")
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return true
}

// Local returns a handler that refuses requests which a browser sends on behalf of another site, without the
// knowledge of its user. It is for a server on a loopback address that asks for no token.
//
// A site can point its own name to this machine (DNS rebinding): its scripts could then read answers as their
// own. But the browser sends that name as Host. A request from another site says so in Sec-Fetch-Site and, if
// it could change something, in Origin. Programs that are no browsers send neither.
func Local(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := CheckLocal(r); err != nil {
			(&answer{ResponseWriter: w, s: &Server{}}).fail(err)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// CheckLocal returns the ErrForbidden of a request that Local refuses.
func CheckLocal(r *http.Request) error {
	foreign := func(text string) error { return fmt.Errorf("%w: %s", rest.ErrForbidden, text) }
	if !IsLoopback(r.Host) {
		return foreign("the host of the request is not this machine: ask for http://127.0.0.1 or http://localhost, with the port")
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		return foreign("requests from other sites are refused: type the address")
	}
	if origin := r.Header.Get("Origin"); origin != "" && !strings.EqualFold(origin, "http://"+r.Host) {
		return foreign("requests from other sites are refused")
	}
	return nil
}

// IsLoopback reports whether a host, with or without a port, can only be this machine.
func IsLoopback(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	} else {
		name = strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
	}
	if strings.EqualFold(name, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.IsLoopback()
}
