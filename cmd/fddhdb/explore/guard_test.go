package explore

import (
	"net"
	"net/http"
	"testing"
)

// Only requests to this machine by its own name, and not on behalf of another site, are
// answered.
func TestForeignRequests(t *testing.T) {
	s := newServer(t, sharedDatabase(t))
	for _, c := range []struct {
		host, site, origin string
		status             int
	}{
		{host, "", "", 200},
		{host, "none", "", 200},
		{host, "same-origin", "", 200},
		{host, "same-origin", "http://" + host, 200},
		{"localhost:7000", "", "", 200},
		{"LOCALHOST", "", "", 200},
		{"[::1]:7000", "", "http://[::1]:7000", 200},
		{"127.1.2.3:80", "", "", 200},
		{host, "cross-site", "", 403},
		{host, "same-site", "", 403}, // another port of this machine
		{host, "", "http://localhost:7000", 403},
		{host, "", "https://" + host, 403},
		{host, "", "http://evil.example", 403},
		{host, "", "null", 403},
		{"evil.example:7000", "same-origin", "http://evil.example:7000", 403}, // rebound
		{"127.0.0.1.evil.example:7000", "", "", 403},
		{"localhost.evil.example", "", "", 403},
		{"192.168.1.7:7000", "", "", 403},
		{"0.0.0.0:7000", "", "", 403},
		{"", "", "", 403},
	} {
		for _, target := range []string{"/", "/api/database"} {
			r := request("GET", target, nil)
			r.Host = c.host
			if c.site != "" {
				r.Header.Set("Sec-Fetch-Site", c.site)
			}
			if c.origin != "" {
				r.Header.Set("Origin", c.origin)
			}
			w := do(s, r)
			if w.Code != c.status {
				t.Errorf("%+v: %s: %d", c, target, w.Code)
			}
			if c.status == 403 {
				refused(t, w, 403, "")
			}
			protected(t, w.Header())
		}
	}
}

func protected(t *testing.T, h http.Header) {
	t.Helper()
	for name, want := range map[string]string{
		"X-Content-Type-Options": "nosniff", "Cross-Origin-Resource-Policy": "same-origin", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
	} {
		if h.Get(name) != want {
			t.Errorf("%s: %q, want %q", name, h.Get(name), want)
		}
	}
	if h.Get("Content-Security-Policy") == "" || h.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("%q, %q", h.Get("Content-Security-Policy"), h.Get("Access-Control-Allow-Origin"))
	}
}

func TestCheckAddress(t *testing.T) {
	for address, good := range map[string]bool{
		"127.0.0.1:0": true, "localhost:80": true, "[::1]:0": true,
		"0.0.0.0:80": false, ":80": false, "[::]:80": false, "example.com:80": false, "127.0.0.1": false, "10.0.0.1:80": false, "": false,
	} {
		if err := CheckAddress(address); (err == nil) != good {
			t.Errorf("%q: %v", address, err)
		}
		if _, _, err := net.SplitHostPort(address); good && err != nil {
			t.Error(err)
		}
	}
}
