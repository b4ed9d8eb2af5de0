package explore

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// protect sets the headers of every answer: load nothing from elsewhere, in no frame,
// with the declared type only, and unusable for other sites.
func protect(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
}

// guard refuses requests that a browser sends on behalf of another site, without the
// knowledge of its user.
//
// A site can point its own name to this machine (DNS rebinding): its scripts could then
// read answers as their own. But the browser sends that name as Host. A request from
// another site says so in Sec-Fetch-Site and, if it could change something, in Origin.
// Programs that are no browsers send neither.
func guard(r *http.Request) error {
	if !isLoopback(r.Host) {
		return statusErrorf(http.StatusForbidden, "the host %.100q is not this machine: ask for http://127.0.0.1 or http://localhost, with the port", r.Host)
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		return statusErrorf(http.StatusForbidden, "requests from other sites are refused: type the address")
	}
	if origin := r.Header.Get("Origin"); origin != "" && !strings.EqualFold(origin, "http://"+r.Host) {
		return statusErrorf(http.StatusForbidden, "requests from other sites are refused, this one is from %.100q", origin)
	}
	return nil
}

// isLoopback reports whether a host, with or without a port, can only be this machine.
func isLoopback(host string) bool {
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

// CheckAddress returns an error unless an address, HOST:PORT, can be reached from this
// machine only.
func CheckAddress(address string) error {
	_, _, err := net.SplitHostPort(address)
	switch {
	case err != nil:
		return badRequest("HOST:PORT is expected, such as 127.0.0.1:8080")
	case !isLoopback(address):
		return badRequest("only this machine is served, at 127.0.0.1, ::1 or localhost, as whoever reaches the page reads everything; from elsewhere go through ssh -L")
	}
	return nil
}
