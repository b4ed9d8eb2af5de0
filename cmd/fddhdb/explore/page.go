package explore

import (
	"embed"
	"io/fs"
	"net/http"
	"path"
	"strconv"
)

//go:embed page
var pageFiles embed.FS

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
	".svg":  svgType,
}

// loadPage returns the files of the page by path. All views are the same document.
func loadPage() (map[string]asset, error) {
	assets := map[string]asset{}
	err := fs.WalkDir(pageFiles, "page", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		body, err := pageFiles.ReadFile(name)
		assets["/"+entry.Name()] = asset{kind: types[path.Ext(name)], body: body}
		return err
	})
	index := assets["/index.html"]
	for _, view := range []string{"/", "/models", "/stats"} {
		assets[view] = index
	}
	delete(assets, "/index.html")
	return assets, err
}

func (a *asset) serve(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", a.kind)
	h.Set("Content-Length", strconv.Itoa(len(a.body)))
	h.Set("Cache-Control", "no-cache") // another version may use the same port next
	_, _ = w.Write(a.body)             // the client may have gone
}
