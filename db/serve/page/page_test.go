package page

import (
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"strings"
	"testing"
)

// Everything that the page refers to is in it, and small.
func TestPage(t *testing.T) {
	h := Handler(http.NotFoundHandler())
	do := func(method, at string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, at, nil))
		return w
	}
	size := 0
	reference := regexp.MustCompile(`(?:src|href|from|import)[= ]"([^"]+)"`)
	for at, a := range assets {
		w := do("GET", at)
		if w.Code != 200 || w.Header().Get("Content-Type") != a.kind || a.kind == "" {
			t.Errorf("%s: %d, %q", at, w.Code, w.Header().Get("Content-Type"))
		}
		if csp := w.Header().Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'self';") ||
			strings.Contains(csp, "unsafe") || !strings.Contains(csp, "frame-ancestors 'none'") {
			t.Errorf("%s: %s", at, csp)
		}
		for name, want := range map[string]string{"X-Content-Type-Options": "nosniff",
			"X-Frame-Options": "DENY", "Cross-Origin-Resource-Policy": "same-origin"} {
			if got := w.Header().Get(name); got != want {
				t.Errorf("%s: %s: %q", at, name, got)
			}
		}
		if at == "/" || path.Ext(at) != "" {
			size += w.Body.Len()
		}
		for _, found := range reference.FindAllStringSubmatch(w.Body.String(), -1) {
			to := found[1]
			if strings.HasPrefix(to, "#") || strings.HasPrefix(to, "http://www.w3.org/") {
				continue
			}
			if _, is := assets[path.Join("/", to)]; !is {
				t.Errorf("%s refers to %s", at, to)
			}
		}
	}
	if size > 200_000 {
		t.Errorf("%d bytes: 200 KB at most", size)
	}
	for request, want := range map[string]int{"HEAD /": 200, "POST /": 405, "GET /nothing": 404,
		"GET /index.html": 404, "GET /../files/main.js": 404, "POST /v1": 404} {
		method, at, _ := strings.Cut(request, " ")
		if got := do(method, at).Code; got != want {
			t.Errorf("%s: %d, want %d", request, got, want)
		}
	}
}
