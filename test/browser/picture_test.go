package browser

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// explorePictures is exploreEmoji with an encoder of pictures, which gives each the vector of 🐱, and dies
// of those that end in die. It returns the picture of 🐱, too.
func explorePictures(t *testing.T, flags ...string) (page *url.URL, picture []byte) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the program is a script of a shell")
	}
	from, err := emojiDatabase()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	t.Setenv("TMPDIR", t.TempDir()) // of this test alone: see left
	folder := t.TempDir()
	dir := filepath.Join(folder, "emoji.db")
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	script := `while read -r file; do
  if tail -c 3 "$file" | grep -q die; then echo "$file is broken" >&2; exit 1; fi
  cat vector.json
done
`
	if err := os.WriteFile(filepath.Join(folder, "encode.sh"), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	var cat struct {
		Payload []byte
		Vectors map[string][]float32
	}
	item, err := exec.Command(program, "get", dir, "🐱", "--collection", "emoji", "--json").Output()
	if err == nil {
		err = json.Unmarshal(item, &cat)
	}
	if err != nil {
		t.Fatal(err)
	}
	line := strings.ReplaceAll(fmt.Sprint(cat.Vectors["picture"]), " ", ",") + "\n"
	if err := os.WriteFile(filepath.Join(folder, "vector.json"), []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	setEncoder(t, dir, "file", "picture=sh encode.sh")
	setEncoder(t, dir, "text", "words="+emoji+" --db "+dir+" --encode")
	return explore(t, dir, append(flags, "--collection", "emoji")...), cat.Payload
}

// drop drops a file on an element of the page.
func (b *tab) drop(on, name string, body []byte) {
	b.Helper()
	eval[bool](b, fmt.Sprintf(`((on, bytes) => {
  const given = new DataTransfer();
  given.items.add(new File([Uint8Array.from(atob(bytes), (c) => c.charCodeAt(0))], %q));
  const event = (type) => new DragEvent(type, { dataTransfer: given, bubbles: true, cancelable: true });
  const over = on.dispatchEvent(event("dragover")), dropped = on.dispatchEvent(event("drop"));
  return !over && !dropped; // the browser does not leave the page
})(document.querySelector(%q), %q) || (() => { throw "the file is not taken" })()`, name, on, base64.StdEncoding.EncodeToString(body)))
}

// A picture that is dropped or chosen finds what its vector finds, and is shown.
// What is wrong with a file stands where it was chosen, or above what was found before.
func TestPicture(t *testing.T) {
	page, picture := explorePictures(t)
	b := browse(t, page)
	b.open("/?collection=emoji&text=pizza&from=words&to=picture")
	b.until(`document.querySelectorAll(".card").length === 24`)
	want := hits(t, page, map[string]any{"key": "🐱", "from": "picture", "to": "picture", "k": 24})
	b.drop(".cards", "my cat.png", picture)
	b.until(`document.querySelector(".query h1")?.textContent === "my cat.png" && document.querySelector(".query img")?.naturalWidth > 0`)
	if got := b.keys(); !slices.Equal(got, want) {
		t.Errorf("cards %q, want %q", got, want)
	}
	b.until(`document.querySelector("#histogram rect") && document.querySelector(".facet button")`)

	b.drop("body", "my cat.txt", bytes.Repeat([]byte("a cat"), 1<<20))
	b.until(`document.querySelector("#pictureName").textContent.includes("my cat.txt: the file is no picture")`)
	if got := b.keys(); !slices.Equal(got, want) {
		t.Errorf("after a mistake: %q", got)
	}
	b.accessible("picture-wrong")
	b.shot("picture-wrong")
	eval[bool](b, `((file) => { Object.defineProperty(file, "size", { value: 2 ** 26 }); return true })(File.prototype)`)
	b.drop("body", "huge.png", picture)
	b.until(`document.querySelector("#pictureName").textContent === "huge.png: at most 32 MiB can be sent"`)
	b.do(chromedp.Reload()) // the files are gone
	b.until(`document.querySelectorAll(".card").length > 0`)
	b.drop("body", "dead.png", append(picture, "die"...))
	b.until(`document.querySelector("#pictureName").textContent.match(/^dead.png: .*is broken/)`)
	b.shot("picture-died")

	file := filepath.Join(t.TempDir(), "again.png")
	if err := os.WriteFile(file, picture, 0o600); err != nil {
		t.Fatal(err)
	}
	b.do(chromedp.SetUploadFiles(chromedp.CSS("#picture"), []string{file}))
	b.until(`document.querySelector(".query h1")?.textContent === "again.png" && !document.querySelector(".bad")`)
	b.drop("body", "rows.csv", []byte(strings.Repeat("0,", 468)+"1\n"))
	b.until(`document.querySelector(".query h1")?.textContent === "Row 0 of rows.csv"`)

	b.open("/models?collection=emoji")
	b.until(`document.querySelector(".panel")`)
	b.drop("body", "my cat.txt", []byte("a cat"))
	b.until(`document.querySelectorAll(".card").length > 0 && document.querySelector("#pictureName").checkVisibility() && document.querySelector("#pictureName").textContent.includes("no picture")`)
	b.quiet()
}

// Without an encoder the page says what a picture needs.
func TestPictureWithoutEncoder(t *testing.T) {
	b := browse(t, exploreEmoji(t))
	b.open("/?collection=emoji")
	b.until(`document.querySelectorAll(".card").length === 36`)
	b.drop("body", "my cat.png", []byte("\x89PNG\r\n\x1a\n"))
	b.until(`document.querySelector("#noPictureEncoder").checkVisibility()`)
	b.accessible("no-picture")
	b.shot("no-picture")
	b.quiet()
}
