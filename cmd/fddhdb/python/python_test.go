package python

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// Versions of Go become those of Python. The list is in the order in which Go sorts it.
func TestVersion(t *testing.T) {
	for _, v := range [][2]string{
		{"v0.0.0-20261130120000-4a0daf5e1234", "0.0.0.dev20261130120000+4a0daf5e1234"},
		{"v0.0.0-20261130120000-4a0daf5e1234+dirty", "0.0.0.dev20261130120000+4a0daf5e1234.dirty"},
		{"v1.2.3-alpha.1", "1.2.3a1"},
		{"v1.2.3-rc.1", "1.2.3rc1"},
		{"v1.2.3-rc.1.0.20261130120000-4a0daf5e1234", "1.2.3rc1.post0.dev20261130120000+4a0daf5e1234"},
		{"v1.2.3", "1.2.3"},
		{"v1.2.4-0.20261130120000-4a0daf5e1234", "1.2.4.dev20261130120000+4a0daf5e1234"},
		{"(devel)", "0.dev0"}, {"unknown", "0.dev0"}, {"", "0.dev0"},
	} {
		if got := Version(v[0]); got != v[1] {
			t.Errorf("%s: %s, not %s", v[0], got, v[1])
		}
	}
}

// The file goes to whoever asks.
func TestServeHTTP(t *testing.T) {
	w := httptest.NewRecorder()
	ServeHTTP(w, httptest.NewRequest(http.MethodGet, Path, nil))
	if w.Code != http.StatusOK || w.Body.String() != Source() ||
		w.Header().Get("Content-Type") != "text/x-python; charset=utf-8" {
		t.Errorf("%d, %q, %.100s", w.Code, w.Header(), w.Body)
	}
}
