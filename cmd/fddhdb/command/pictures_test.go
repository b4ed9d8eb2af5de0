package command

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/clitest"
)

// scene draws a picture of some blobs. A seed is one scene, in any size.
func scene(seed uint64, width, height int) *image.RGBA {
	r := rand.New(rand.NewPCG(seed, 7))
	var blobs [20][6]float64
	for i := range blobs {
		for j := range blobs[i] {
			blobs[i][j] = r.Float64()
		}
	}
	m := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			c := [3]float64{128, 128, 128}
			for _, b := range blobs {
				dx, dy := (float64(x)+.5)/float64(width)-b[0], (float64(y)+.5)/float64(height)-b[1]
				near := math.Exp(-(dx*dx + dy*dy) / (.002 + .03*b[2]))
				for i := range c {
					c[i] += near * 240 * (b[3+i] - .5)
				}
			}
			of := func(v float64) uint8 { return uint8(min(255, max(0, v))) }
			m.SetRGBA(x, y, color.RGBA{of(c[0]), of(c[1]), of(c[2]), 255})
		}
	}
	return m
}

// mirrored returns a picture, left to right.
func mirrored(m *image.RGBA) *image.RGBA {
	out := image.NewRGBA(m.Rect)
	for y := range m.Rect.Dy() {
		for x := range m.Rect.Dx() {
			out.SetRGBA(m.Rect.Dx()-1-x, y, m.RGBAAt(x, y))
		}
	}
	return out
}

// coded returns a picture in the format of the extension of name.
func coded(t *testing.T, name string, m image.Image, quality int) []byte {
	t.Helper()
	var b bytes.Buffer
	switch filepath.Ext(strings.ToLower(name)) {
	case ".jpg", ".jpeg":
		clitest.Check(t, jpeg.Encode(&b, m, &jpeg.Options{Quality: quality}))
	case ".gif":
		clitest.Check(t, gif.Encode(&b, m, nil))
	default:
		clitest.Check(t, png.Encode(&b, m))
	}
	return b.Bytes()
}

// album makes a folder of four scenes, with copies of the first, and files that are no pictures.
func album(t *testing.T) (folder string, files map[string][]byte) {
	t.Helper()
	folder = filepath.Join(t.TempDir(), "album")
	first := scene(1, 320, 240)
	files = map[string][]byte{
		"scene.png":          coded(t, ".png", first, 0),
		"copies/half.JPG":    coded(t, ".jpg", scene(1, 160, 120), 90),
		"copies/poor.jpeg":   coded(t, ".jpg", first, 30),
		"copies/few.gif":     coded(t, ".gif", first, 0),
		"copies/mirror.png":  coded(t, ".png", mirrored(first), 0),
		"other/two.jpg":      coded(t, ".jpg", scene(2, 300, 200), 90),
		"other/three.png":    coded(t, ".png", scene(3, 100, 300), 0),
		"other/ümläut 4.png": coded(t, ".png", scene(4, 200, 200), 0),
		"notes.txt":          []byte("no picture, and none by its name"),
	}
	for name, data := range files {
		path := filepath.Join(folder, filepath.FromSlash(name))
		clitest.Check(t, os.MkdirAll(filepath.Dir(path), 0o777))
		clitest.WriteFile(t, path, string(data))
	}
	return folder, files
}

// hitsOf returns keys and distances of the hits of a search.
func hitsOf(t *testing.T, args ...string) (keys []string, distances []int) {
	t.Helper()
	var found struct {
		Hits []struct {
			Key      string
			Distance int
		}
	}
	mustJSON(t, &found, append([]string{"search"}, args...)...)
	for _, h := range found.Hits {
		keys, distances = append(keys, h.Key), append(distances, h.Distance)
	}
	return keys, distances
}

// A folder of pictures becomes a collection in which each copy of a picture is found, and no other.
func TestPictures(t *testing.T) {
	folder, files := album(t)
	for _, hash := range []struct {
		name   string
		radius string
	}{{"pdq", "31"}, {"phash", "7"}, {"dhash", "4"}} {
		f := empty(t)
		args := []string{"import", f.db, "--init", "--pictures", folder, "--hash", hash.name}
		var report struct{ Items, Skipped int }
		mustJSON(t, &report, args...)
		if report.Items != 8 || report.Skipped != 0 {
			t.Fatal(report)
		}
		copies := []string{"copies/few.gif", "copies/half.JPG", "copies/poor.jpeg", "scene.png"}
		query := filepath.Join(folder, "copies", "half.JPG")
		keys, distances := hitsOf(t, f.db, "--picture", query, "--radius", hash.radius)
		if distances[0] != 0 || keys[0] != "copies/half.JPG" {
			t.Errorf("%s: the picture itself is not the first: %v %v", hash.name, keys, distances)
		}
		if slices.Sort(keys); !slices.Equal(keys, copies) {
			t.Errorf("%s: %v, want %v", hash.name, keys, copies)
		}
		if hash.name == "pdq" {
			turned := slices.Insert(slices.Clone(copies), 2, "copies/mirror.png")
			keys, _ = hitsOf(t, f.db, "--picture", query, "--radius", hash.radius, "--turns")
			if slices.Sort(keys); !slices.Equal(keys, turned) {
				t.Errorf("with turns: %v", keys)
			}
			if keys, _ = hitsOf(t, f.db, "--picture", query, "--turns", "-k", "5"); len(keys) != 5 ||
				!slices.Contains(keys, "copies/mirror.png") {
				t.Errorf("the nearest five with turns: %v", keys)
			}
		}
		var item struct{ Fields map[string]any }
		mustJSON(t, &item, "get", f.db, "copies/half.JPG")
		if item.Fields["width"] != 160. || item.Fields["height"] != 120. ||
			item.Fields["bytes"] != float64(len(files["copies/half.JPG"])) {
			t.Errorf("%s: %v", hash.name, item.Fields)
		}
		if _, has := item.Fields["quality"]; has != (hash.name == "pdq") {
			t.Errorf("%s: quality in %v", hash.name, item.Fields)
		}

		// More pictures come: the same command takes them in.
		clitest.WriteFile(t, filepath.Join(folder, "new.png"), string(files["other/two.jpg"]))
		mustJSON(t, &report, args...)
		if report.Items != 1 || strings.TrimSpace(must(t, "count", f.db)) != "9" {
			t.Error(report)
		}
		clitest.Check(t, os.Remove(filepath.Join(folder, "new.png")))
	}
	for name, want := range files {
		if got := clitest.Must(os.ReadFile(filepath.Join(folder, name)))(t); !bytes.Equal(got, want) {
			t.Errorf("%s has changed", name)
		}
	}
}

// huge returns a PNG whose header says so many pixels.
func huge(width, height uint32) []byte {
	chunk := []byte("IHDR")
	chunk = binary.BigEndian.AppendUint32(chunk, width)
	chunk = binary.BigEndian.AppendUint32(chunk, height)
	chunk = append(chunk, 8, 2, 0, 0, 0)
	out := binary.BigEndian.AppendUint32([]byte("\x89PNG\r\n\x1a\n"), uint32(len(chunk)-4))
	return binary.BigEndian.AppendUint32(append(out, chunk...), crc32.ChecksumIEEE(chunk))
}

// dot is a WebP of one pixel.
const dot = "RIFF\x1a\x00\x00\x00WEBPVP8L\r\x00\x00\x00/\x00\x00\x00\x10\a\x10\x11\x11\x88\x88\xfe\a\x00"

// A file that is no picture costs itself, and is named with the reason.
func TestBrokenPictures(t *testing.T) {
	folder, files := album(t)
	for name, data := range map[string]string{
		"cut.jpg":     string(files["other/two.jpg"][:len(files["other/two.jpg"])/2]),
		"empty.png":   "",
		"text.jpg":    "Dear diary,",
		"vast.png":    string(huge(60000, 60000)),
		"head.gif":    "GIF89a",
		"a\tname.jpg": "not a picture either",
		"dot.webp":    dot,
	} {
		clitest.WriteFile(t, filepath.Join(folder, name), data)
	}
	want := map[string]string{"cut.jpg": "cut short", "empty.png": "empty", "text.jpg": "no JPEG, PNG, GIF or WebP",
		"vast.png": "60000 x 60000 pixels, and at most 100000000 are read", "head.gif": "cut short"}
	if pipe := filepath.Join(folder, "pipe.jpg"); mkfifo(pipe) == nil {
		want["pipe.jpg"] = "not a regular file"
	}
	if os.Symlink(folder, filepath.Join(folder, "other", "again")) == nil &&
		os.Symlink("nowhere", filepath.Join(folder, "lost.png")) == nil {
		want["lost.png"] = "no such file"
	}
	f := empty(t)
	code, stdout, stderr := do(t, "import", f.db, "--init", "--pictures", folder, "--json")
	var report struct {
		Items, Skipped int
		Reasons        []struct {
			Reason string
			Files  []string
		} `json:"skipped_reasons"`
	}
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || code != 0 {
		t.Fatal(code, err, stderr)
	}
	if report.Items != 9 || report.Skipped != len(want)+1 {
		t.Errorf("%d items, %d skipped: %s", report.Items, report.Skipped, stderr)
	}
	for name, reason := range want {
		if !slices.ContainsFunc(report.Reasons, func(r struct {
			Reason string
			Files  []string
		}) bool {
			return strings.Contains(r.Reason, reason) && slices.Contains(r.Files, name)
		}) {
			t.Errorf("%s is not named with %q: %s", name, reason, stderr)
		}
	}
	if strings.Contains(stderr, "a\tname") {
		t.Errorf("stderr has a control character: %q", stderr)
	}
	says(t, 1, `"cut.jpg": it is damaged or cut short`, "import", f.db, "--pictures", folder, "--on-error", "stop",
		"--from-row", "4")
	says(t, 1, "text.jpg: it is no JPEG", "search", f.db, "--picture", filepath.Join(folder, "text.jpg"))
	says(t, 1, "60000 x 60000", "search", f.db, "--picture", filepath.Join(folder, "vast.png"))
}

// Without a hash a collection of pictures has vectors of how they look, and the fields that files and cameras
// tell. What is stored already is left out the next time, and what somebody has added stays.
func TestPicturesByLook(t *testing.T) {
	folder, files := album(t)
	taken := clitest.WithExif(files["other/two.jpg"], "Acme", "Box", 6, "2024:05:17 18:30:01", "+02:00")
	clitest.WriteFile(t, filepath.Join(folder, "other", "two.jpg"), string(taken))
	f := empty(t)
	args := []string{"import", f.db, "--init", "--pictures", folder, "--folder-labels", "--thumbnails"}
	var report struct{ Items, Skipped, Unchanged, Deleted int }
	importing := func(items, unchanged, deleted int, more ...string) {
		t.Helper()
		report.Items, report.Unchanged, report.Deleted = 0, 0, 0
		mustJSON(t, &report, append(slices.Clone(args), more...)...)
		if report.Items != items || report.Unchanged != unchanged || report.Deleted != deleted {
			t.Errorf("%+v, want %d items, %d unchanged, %d deleted", report, items, unchanged, deleted)
		}
	}
	importing(8, 0, 0, "--dry-run")
	importing(8, 0, 0)
	keys, _ := hitsOf(t, f.db, filepath.Join(folder, "scene.png"), "-k", "4")
	copies := []string{"copies/few.gif", "copies/half.JPG", "copies/poor.jpeg", "scene.png"}
	if slices.Sort(keys); !slices.Equal(keys, copies) {
		t.Errorf("a scene finds %v", keys)
	}
	var item struct {
		Labels  []string
		Fields  map[string]any
		Payload []byte
		Vectors map[string][]float32
	}
	get := func(key string) {
		t.Helper()
		item.Labels, item.Fields, item.Payload = nil, nil, nil
		mustJSON(t, &item, "get", f.db, key)
	}
	get("other/two.jpg")
	small, err := jpeg.Decode(bytes.NewReader(item.Payload))
	clitest.Check(t, err)
	if s := small.Bounds().Size(); s.X != 171 || s.Y != 256 { // the camera was held upright
		t.Errorf("a thumbnail of %v", s)
	}
	if item.Fields["taken_at"] != "2024-05-17T16:30:01Z" || item.Fields["camera"] != "Acme Box" ||
		!slices.Equal(item.Labels, []string{"other"}) {
		t.Errorf("%v, labels %v", item.Fields, item.Labels)
	}
	importing(0, 8, 0)

	// One changes, one comes, one goes; another one is not of the folder.
	must(t, "put", f.db, "other/two.jpg", "--labels", "mine", "--field", "camera=x", "--vector",
		"image="+strings.Repeat("1,", len(item.Vectors["image"])-1)+"1")
	must(t, "put", f.db, "own.jpg", "--picture", filepath.Join(folder, "scene.png"), "--labels", "mine")
	clitest.WriteFile(t, filepath.Join(folder, "new.png"), string(files["other/three.png"]))
	clitest.Check(t, os.Remove(filepath.Join(folder, "scene.png")))
	importing(2, 6, 1, "--sync", "--dry-run")
	importing(2, 6, 1, "--sync")
	if n := strings.TrimSpace(must(t, "count", f.db)); n != "9" {
		t.Error(n, "items")
	}
	get("other/two.jpg")
	if slices.Sort(item.Labels); !slices.Equal(item.Labels, []string{"mine", "other"}) ||
		item.Fields["camera"] != "Acme Box" || len(item.Payload) == 0 {
		t.Errorf("%v, labels %v", item.Fields, item.Labels)
	}
	if get("own.jpg"); !slices.Equal(item.Labels, []string{"mine"}) || item.Fields["width"] != 320. {
		t.Errorf("%v, labels %v", item.Fields, item.Labels)
	}
	importing(0, 8, 0)
}

// Deletion with --sync keeps to the pictures of the folder: another folder changes nothing, and items that no
// import of pictures made stay, as do pictures below a folder that cannot be read.
func TestSyncKeeps(t *testing.T) {
	folder, files := album(t)
	f := empty(t)
	must(t, "init", f.db, "--modality", "image:688", "--field", "bytes:int", "--field", "modified:time")
	must(t, "encoder", f.db, "--input", "file", "--set", "image=builtin:look")
	args := []string{"import", f.db, "--pictures", folder}
	must(t, args...)
	must(t, "put", f.db, "report", "--field", "modified=2024-01-01T00:00:00Z")
	other := f.path("other")
	for _, hidden := range []string{"@eaDir/scene.png", ".thumbnails/a.png", "._scene.png"} { // are left out
		clitest.Check(t, os.MkdirAll(filepath.Dir(filepath.Join(other, hidden)), 0o777))
		clitest.WriteFile(t, filepath.Join(other, hidden), string(files["scene.png"]))
	}
	for i := range 20 {
		clitest.WriteFile(t, filepath.Join(other, fmt.Sprint(i, ".png")), string(files["scene.png"]))
	}
	count := func(want string) {
		t.Helper()
		if n := strings.TrimSpace(must(t, "count", f.db)); n != want {
			t.Errorf("%s items, want %s", n, want)
		}
	}
	empty := f.path("empty") // as where nothing is mounted
	clitest.Check(t, os.Rename(folder, folder+"-away"))
	clitest.Check(t, os.Mkdir(folder, 0o777))
	clitest.WriteFile(t, filepath.Join(folder, "one.png"), string(files["scene.png"]))
	for _, more := range []string{"--sync", "--dry-run"} {
		says(t, 1, "8 pictures of the collection would be deleted, and 0 have their file in",
			append(args, "--sync", more)...)
	}
	count("9")
	clitest.Check(t, os.Rename(folder, empty))
	clitest.Check(t, os.Rename(folder+"-away", folder))
	clitest.Check(t, os.Remove(filepath.Join(folder, "scene.png")))
	copies := filepath.Join(folder, "copies")
	if clitest.Check(t, os.Chmod(copies, 0)); unreadable(copies) {
		_, stdout, stderr := do(t, append(args, "--sync", "--dry-run")...)
		if !strings.Contains(stdout, "deleted 1") || !strings.Contains(stderr, `"copies": permission denied`) {
			t.Error(stdout, stderr)
		}
	}
	clitest.Check(t, os.Chmod(copies, 0o700))
	must(t, append(args, "--sync")...)
	count("8")

	// Of two folders in one collection none deletes the pictures of the other one.
	must(t, "import", f.db, "--pictures", other)
	count("28")
	must(t, append(args, "--sync")...)
	must(t, "import", f.db, "--pictures", other, "--sync")
	count("28")
	clitest.Check(t, os.Remove(filepath.Join(other, "3.png")))
	must(t, append(args, "--sync")...)
	count("27")

	// A picture of the same name in another folder is named, and takes no place.
	more := f.path("more")
	clitest.Check(t, os.Mkdir(more, 0o777))
	clitest.WriteFile(t, filepath.Join(more, "1.png"), string(files["other/three.png"]))
	before := must(t, "get", f.db, "1.png")
	if _, stdout, stderr := do(t, "import", f.db, "--pictures", more); !strings.Contains(stdout, "imported 0 items, skipped 1") ||
		!strings.Contains(stderr, "the collection has the picture of this name in "+other) {
		t.Error(stdout, stderr)
	}
	if after := must(t, "get", f.db, "1.png"); after != before {
		t.Errorf("1.png has become %s", after)
	}
	clitest.Check(t, os.RemoveAll(more))

	// A folder that is not mounted keeps its pictures, though these are few: it is not there, or empty. If it
	// was moved into the place of the present one, nothing is missing, and it does not matter any more.
	few := f.path("few")
	clitest.Check(t, os.Mkdir(few, 0o777))
	clitest.WriteFile(t, filepath.Join(few, "rare.png"), string(files["scene.png"]))
	must(t, "import", f.db, "--pictures", few)
	must(t, "import", f.db, "--pictures", other, "--sync")
	clitest.Check(t, os.Rename(few, few+"-away"))
	sync := []string{"import", f.db, "--pictures", other, "--sync"}
	says(t, 1, `1 picture of the collection, such as "rare.png", would be deleted, and may be in `+few, sync...)
	clitest.Check(t, os.Mkdir(few, 0o777))
	clitest.WriteFile(t, filepath.Join(few, "README"), "mount the disk here")
	says(t, 1, "is its disk mounted? Nothing was changed", sync...)
	count("28")
	clitest.Check(t, os.Rename(filepath.Join(few+"-away", "rare.png"), filepath.Join(other, "rare.png")))
	must(t, sync...)
	clitest.Check(t, os.Remove(filepath.Join(other, "4.png")))
	must(t, sync...)
	count("27")
}

// A program that a database names runs for a URL of the database, too, once it is trusted in this folder.
func TestPicturesByProgramOfServer(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the program is one of a shell")
	}
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	folder, _ := album(t)
	f := empty(t)
	must(t, "init", f.db, "--modality", "image:2", "--field", "bytes:int", "--field", "modified:time")
	must(t, "encoder", f.db, "--input", "file", "--set", `image=sh -c 'while read f; do echo "[1, 2]"; done'`)
	url, _ := startServe(t, f.db)
	url += "/" + strings.TrimSuffix(filepath.Base(f.db), ".db")
	says(t, 1, "is not run, as you have not set it here", "import", url, "--pictures", folder)
	must(t, "encoder", url, "--input", "file", "--trust", "image")
	for _, want := range []string{"imported 8 items", "imported 0 items, unchanged 8"} {
		if out := must(t, "import", url, "--pictures", folder); !strings.Contains(out, want) {
			t.Errorf("%q, want %q", out, want)
		}
	}
}

func unreadable(folder string) bool {
	_, err := os.ReadDir(folder)
	return err != nil
}

// clip starts a stand-in for Immich's service. The vector of a picture is a colour of it; the vector of a
// word is the colour that it names. The model "turned" has the three numbers in another order. While down is
// true the service fails.
func clip(t *testing.T, down *atomic.Bool) (url string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if down.Load() {
			http.Error(w, "out of memory", http.StatusInternalServerError)
			return
		}
		x := map[string][]float64{"red": {1, 0, 0}, "blue": {0, 0, 1}}[r.FormValue("text")]
		if x == nil {
			x = []float64{1, 1, 1}
		}
		if f, _, err := r.FormFile("image"); err == nil {
			m, _, err := image.Decode(f)
			if err != nil {
				http.Error(w, "no picture", http.StatusBadRequest)
				return
			}
			red, green, blue, _ := m.At(m.Bounds().Min.X, m.Bounds().Min.Y).RGBA()
			x = []float64{float64(red), float64(green), float64(blue)}
		}
		if strings.Contains(r.FormValue("entries"), "turned") {
			x = []float64{x[1], x[2], x[0], 1}
		}
		b, err := json.Marshal(x)
		clitest.Check(t, err)
		fmt.Fprintf(w, `{"clip":%q}`, b)
	}))
	t.Cleanup(s.Close)
	return s.URL + "/predict"
}

// A folder of pictures gets the vectors of a model: words find pictures, and so do pictures. A model takes
// the place of another one while searches go on.
func TestPicturesByEncoder(t *testing.T) {
	var down atomic.Bool
	service := clip(t, &down)
	f := empty(t)
	folder := f.path("pictures")
	clitest.Check(t, os.Mkdir(folder, 0o777))
	paint := func(name string, c color.Color) {
		clitest.WriteFile(t, filepath.Join(folder, name), string(clitest.Picture(t, name, 8, 8, c)))
	}
	for i := range 40 {
		paint(fmt.Sprintf("grey%02d.png", i), color.Gray{uint8(50 + i)})
	}
	paint("sunset.png", color.NRGBA{230, 20, 10, 255})
	paint("sea.png", color.NRGBA{10, 20, 230, 255})
	args := []string{"import", f.db, "--init", "--pictures", folder, "--encoder",
		service + " ViT-B-32__openai", "--thumbnails"}
	if out := must(t, args...); !strings.Contains(out, "image (3 dimensions)") ||
		!strings.Contains(out, "imported 42 items") {
		t.Error(out)
	}
	finds := func(want string, query ...string) {
		t.Helper()
		if keys, _ := hitsOf(t, append([]string{f.db, "-k", "1"}, query...)...); !slices.Equal(keys,
			[]string{want}) {
			t.Errorf("%s finds %v, want %s", query, keys, want)
		}
	}
	finds("sunset.png", "red")
	finds("sea.png", "--text", "blue")
	finds("sea.png", filepath.Join(folder, "sea.png"))
	finds("sea.png", "sea.png") // a key, and no text
	says(t, 1, "there is no such file, and", "search", f.db, "lost sea.png")

	// What the service has not answered, the next import asks again.
	paint("lake.png", color.NRGBA{0, 0, 255, 255})
	down.Store(true)
	says(t, 1, "out of memory", "import", f.db, "--pictures", folder)
	down.Store(false)
	if out := must(t, args...); !strings.Contains(out, "imported 1 item, unchanged 42") {
		t.Error(out)
	}
	finds("lake.png", "blue")
	says(t, 2, "has another encoder", append(slices.Clone(args[:len(args)-3]), "--encoder",
		service+" turned")...)

	// Another model.
	more := []string{"reembed", f.db, "--from", "image", "--to", "turned"}
	if out := must(t, append(more, "--encoder", service+" turned")...); !strings.Contains(out,
		"43 items got") {
		t.Error(out)
	}
	finds("lake.png", "blue")
	paint("rose.png", color.NRGBA{255, 0, 0, 255}) // it gets both vectors
	must(t, args...)
	finds("rose.png", "red", "--from", "turned", "--to", "turned")
	must(t, append(more, "--switch")...)
	finds("rose.png", "red")
	if out := must(t, "search", f.db, "red", "--json"); !strings.Contains(out, "rose.png") {
		t.Error(out)
	}
	must(t, "reembed", f.db, "--from", "turned", "--to", "image", "--switch")
	finds("rose.png", "red")
}

// An import of pictures that ended early goes on with the pictures that are not stored.
func TestInterruptedPictures(t *testing.T) {
	f := empty(t)
	folder := f.path("pictures")
	clitest.Check(t, os.Mkdir(folder, 0o777))
	data := string(coded(t, ".png", scene(1, 8, 8), 0))
	for i := range 300 {
		clitest.WriteFile(t, filepath.Join(folder, fmt.Sprintf("%04d.png", i)), data)
	}
	args := []string{"import", f.db, "--init", "--pictures", folder, "--hash", "pdq"}
	must(t, args...)
	must(t, "delete", f.db, "--where", "width = 8 AND bytes > 0")
	must(t, append(args, "--from-row", "200")...)
	if out := must(t, args...); !strings.Contains(out, "imported 200 items, unchanged 100") {
		t.Error(out)
	}
	clitest.WriteFile(t, filepath.Join(folder, "broken.png"), "x")
	says(t, 1, "nothing was stored", append(args, "--on-error", "stop")...)
	if _, out, stderr := do(t, args...); !strings.Contains(out, "imported 0 items, skipped 1, unchanged 300") {
		t.Error(out, stderr)
	}
}

// Mistakes are told before anything is stored.
func TestMistakesWithPictures(t *testing.T) {
	folder, _ := album(t)
	f := empty(t)
	for want, args := range map[string]string{
		"--pictures takes pdq, phash, dhash":      "--init --pictures " + folder + " --hash simhash",
		`--hash "pdq": --texts takes simhash`:     "--init --texts x.txt --hash pdq",
		"no such file":                            "--init --pictures " + folder + "/none",
		"it is a file; a folder is expected":      "--init --pictures " + folder + "/notes.txt",
		"--encoder and --hash":                    "--init --pictures " + folder + " --hash pdq --encoder x",
		"--encoder is about --init":               "--encoder x --pictures " + folder,
		"--sync is about --pictures":              "--sync --items x.jsonl",
		"--hash makes the codes":                  "--init --hash pdq --items x.jsonl",
		"--pictures and --texts":                  "--init --pictures " + folder + " --texts x.txt",
		"--pictures has whole items":              "--init --pictures " + folder + " --labels x.txt",
		"the key of a picture is its path":        "--init --number-from 3 --pictures " + folder,
		"--text-column is about the columns":      "--init --text-column a --pictures " + folder,
		".json, .csv and .parquet files are read": "--init --texts " + folder + "/scene.png",
	} {
		code, _, stderr := do(t, append([]string{"import", f.db}, strings.Fields(args)...)...)
		if code == 0 || !strings.Contains(stderr, want) {
			t.Errorf("import %s: %d, %s", args, code, stderr)
		}
	}
	if _, err := os.Stat(f.db); err == nil {
		t.Error("a database was made")
	}

	must(t, "init", f.db, "--codes", "256")
	says(t, 2, "does not say which hash makes its codes", "import", f.db, "--pictures", folder)
	picture := filepath.Join(folder, "scene.png")
	says(t, 2, "does not say which hash", "search", f.db, "--picture", picture)
	must(t, "init", f.db, "--collection", "p", "--hash", "phash", "--field", "width:string")
	says(t, 2, "codes of two hashes do not compare", "import", f.db, "--collection", "p", "--pictures", folder,
		"--hash", "pdq")
	must(t, "import", f.db, "--collection", "p", "--pictures", folder)
	says(t, 2, "only pdq has turns", "search", f.db, "--collection", "p", "--picture", picture, "--turns")
	says(t, 2, "search by --text for a hash of texts", "search", f.db, "--collection", "p", "--text", "a cat")
	must(t, "init", f.db, "--collection", "v", "--modality", "e:2")
	says(t, 2, "has no encoder of input file", "search", f.db, "--collection", "v", "--picture", picture)
	says(t, 2, "has no encoder of pictures", "import", f.db, "--collection", "v", "--pictures", folder)
	says(t, 2, "has vectors of pictures", "import", f.db, "--collection", "v", "--pictures", folder, "--hash", "pdq")
	must(t, "init", f.db, "--collection", "own", "--codes", "64", "--hash", "mine")
	says(t, 2, "by mine, which this version does not know", "search", f.db, "--collection", "own", "--picture",
		picture)
}

// Texts are found by a text that is nearly theirs.
func TestTexts(t *testing.T) {
	f := empty(t)
	r := rand.New(rand.NewPCG(1, 1))
	var pages []string
	for range 30 {
		var words []string
		for range 120 {
			words = append(words, fmt.Sprintf("w%d", r.IntN(3000)))
		}
		pages = append(pages, strings.Join(words, " "))
	}
	edited := strings.Replace(pages[7], " w", " another w", 1)
	lines := append(slices.Clone(pages), "", "... ---")
	clitest.WriteFile(t, f.path("pages.txt"), strings.Join(lines, "\n")+"\n")
	code, stdout, stderr := do(t, "import", f.db, "--init", "--texts", f.path("pages.txt"))
	if code != 0 || !strings.Contains(stdout, "imported 30 items, skipped 2") ||
		!strings.Contains(stderr, `the text "31" has no word; and 1 like it: row 31`) {
		t.Errorf("%d, %s, %s", code, stdout, stderr)
	}
	if keys, _ := hitsOf(t, f.db, "--text", edited, "--radius", "8"); !slices.Equal(keys, []string{"8"}) {
		t.Errorf("an edited page finds %v", keys)
	}

	var table strings.Builder
	for i, page := range pages {
		clitest.Check(t, json.NewEncoder(&table).Encode(map[string]any{"url": fmt.Sprint("/page/", i),
			"body": page, "title": fmt.Sprint("Page ", i), "vector": []int{1, i}}))
	}
	clitest.WriteFile(t, f.path("pages.jsonl"), table.String())
	args := []string{"import", f.db, "--init", "--collection", "urls", "--texts", f.path("pages.jsonl"),
		"--text-column", "body", "--key-column", "url", "--field-column", "title"}
	for range 2 { // the second time they are replaced
		if code, _, stderr := do(t, args...); code != 0 {
			t.Fatal(stderr)
		}
	}
	var item struct{ Fields map[string]any }
	mustJSON(t, &item, "get", f.db, "--collection", "urls", "/page/7")
	if len(item.Fields) != 1 || item.Fields["title"] != "Page 7" {
		t.Error(item.Fields)
	}
	keys, _ := hitsOf(t, f.db, "--collection", "urls", "--text", edited, "--radius", "8")
	if !slices.Equal(keys, []string{"/page/7"}) {
		t.Errorf("an edited page finds %v", keys)
	}
	if n := strings.TrimSpace(must(t, "count", f.db, "--collection", "urls")); n != "30" {
		t.Error(n, "items")
	}
	says(t, 2, `has no column "text": there is`, "import", f.db, "--init", "--collection", "x", "--texts",
		f.path("pages.jsonl"))

	// A field of the name of the column keeps the text.
	must(t, "init", f.db, "--collection", "kept", "--hash", "simhash", "--field", "text:string")
	code, _, stderr = do(t, "import", f.db, "--collection", "kept", "--texts", f.path("pages.txt"))
	if code != 0 {
		t.Fatal(stderr)
	}
	mustJSON(t, &item, "get", f.db, "--collection", "kept", "8")
	if item.Fields["text"] != pages[7] {
		t.Error(item.Fields)
	}
}
