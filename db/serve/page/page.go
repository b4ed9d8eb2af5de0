// Package page is a page that shows databases in a browser: search, items, models and figures. It asks the
// server of package serve for all that it shows, and changes what the token of the sender may change.
// docs/EXPLORE.md describes it.
//
//	h, err := serve.New(databases, serve.Options{})
//	http.Handle("/", page.Handler(h))
//
// Invariants: the page loads nothing from elsewhere (page_test.go); content of a database is text and
// pictures to it, and runs nothing (module test, package browser).
package page

import (
	"embed"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
)

//go:embed files
var files embed.FS

// views are the paths of the page itself.
var views = []string{"/", "/map", "/duplicates", "/models", "/stats"}

// An asset is a file of the page.
type asset struct {
	kind string // type
	body []byte
}

// types are the types of files by extension. Those of the operating system may differ.
var types = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

var assets = func() map[string]asset {
	all := map[string]asset{}
	entries, err := fs.ReadDir(files, "files")
	if err != nil {
		panic(err) // they are in the program
	}
	for _, e := range entries {
		body, err := files.ReadFile("files/" + e.Name())
		if err != nil {
			panic(err)
		}
		all["/"+e.Name()] = asset{types[path.Ext(e.Name())], body}
	}
	for _, view := range views {
		all[view] = all["/index.html"]
	}
	delete(all, "/index.html")
	return all
}()

// Handler returns a handler that serves the page at /, and passes all other requests on to a server.
func Handler(server http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a, is := assets[r.URL.Path]
		if !is {
			server.ServeHTTP(w, r)
			return
		}
		reading := []string{http.MethodGet, http.MethodHead}
		if !slices.Contains(reading, r.Method) {
			w.Header().Set("Allow", strings.Join(reading, ", "))
			http.Error(w, "the page is only read", http.StatusMethodNotAllowed)
			return
		}
		h := w.Header()
		// Nothing from elsewhere, in no frame, and unusable for other sites. A picture may be one that the
		// page has fetched with its token, or one that somebody has chosen.
		h.Set("Content-Security-Policy", "default-src 'self'; img-src 'self' blob:; base-uri 'none'; "+
			"form-action 'self'; frame-ancestors 'none'; object-src 'none'")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Content-Type", a.kind)
		h.Set("Content-Length", strconv.Itoa(len(a.body)))
		h.Set("Cache-Control", "no-cache") // another version may use the same port next
		_, _ = w.Write(a.body)             // the client may have gone
	})
}
