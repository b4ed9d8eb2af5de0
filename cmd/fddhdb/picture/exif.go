package picture

import (
	"io"
	"strings"
	"time"
	"unicode"

	"github.com/bep/imagemeta"
)

// Exif has what the camera has noted in a file. What is missing or unreadable is zero.
type Exif struct {
	TakenAt     time.Time
	Camera      string // maker and model
	Orientation int    // from 1 to 8, as EXIF counts them; 0: unknown
}

// maxCamera bounds the name of a camera, in bytes.
const maxCamera = 100

// exifFormats are the formats of package image whose metadata are read.
var exifFormats = map[string]imagemeta.ImageFormat{"jpeg": imagemeta.JPEG, "png": imagemeta.PNG,
	"webp": imagemeta.WebP}

// readExif reads the metadata of a picture. The decoder bounds tags and their sizes; damaged metadata cost
// what follows them, not the picture.
func readExif(from io.ReadSeeker, format string) (e Exif) {
	known, ok := exifFormats[format]
	if !ok {
		return e
	}
	if _, err := from.Seek(0, io.SeekStart); err != nil {
		return e
	}
	tags := map[string]any{}
	_, _ = imagemeta.Decode(imagemeta.Options{R: from, ImageFormat: known, Sources: imagemeta.EXIF,
		ShouldHandleTag: func(tag imagemeta.TagInfo) bool {
			switch tag.Tag {
			case "Make", "Model", "Orientation", "DateTimeOriginal", "OffsetTimeOriginal":
				return true
			}
			return false
		},
		HandleTag: func(tag imagemeta.TagInfo) error {
			if _, twice := tags[tag.Tag]; !twice { // a thumbnail in the file has tags of its own, later
				tags[tag.Tag] = tag.Value
			}
			return nil
		}})
	if n, ok := tags["Orientation"].(uint16); ok && 1 <= n && n <= 8 {
		e.Orientation = int(n)
	}
	text := func(name string) string {
		s, _ := tags[name].(string)
		s = strings.Map(func(r rune) rune {
			if unicode.IsPrint(r) {
				return r
			}
			return -1
		}, strings.ToValidUTF8(s, ""))
		return strings.TrimSpace(s[:min(len(s), maxCamera)])
	}
	maker, model := text("Make"), text("Model")
	if e.Camera = model; !strings.HasPrefix(strings.ToLower(model), strings.ToLower(maker)) {
		e.Camera = strings.TrimSpace(maker + " " + model)
	}
	e.Camera = strings.ToValidUTF8(e.Camera, "")
	// Without an offset the clock of the camera is taken as UTC, so that a picture has one time everywhere.
	for _, form := range []struct{ layout, text string }{
		{"2006:01:02 15:04:05-07:00", text("DateTimeOriginal") + text("OffsetTimeOriginal")},
		{"2006:01:02 15:04:05", text("DateTimeOriginal")}} {
		if at, err := time.Parse(form.layout, form.text); err == nil {
			if at = at.UTC(); at.Year() > 0 && at.Year() < 10_000 { // a field can have it
				e.TakenAt = at
				break
			}
		}
	}
	return e
}
