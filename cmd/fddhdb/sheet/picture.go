package sheet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/image/draw"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
)

// Limits of a picture, which may be hostile. Decoding takes up to about 16 bytes a
// pixel, for one picture at a time.
const (
	maxPictureBytes  = 32 << 20
	maxPicturePixels = 25_000_000
)

// A pictureFinder finds the picture of an item: in the payload, or in a file below a
// folder, named by a string field or the key.
type pictureFinder struct {
	fields []string // names of string fields
	folder *os.Root // nil: no files
}

func newPictureFinder(schema db.Schema, folder string) (*pictureFinder, error) {
	f := &pictureFinder{}
	for _, field := range schema.Fields {
		if field.Type == db.String {
			f.fields = append(f.fields, field.Name)
		}
	}
	if folder == "" {
		return f, nil
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, exit.Usagef("--pictures %s: %w", folder, unwrapPath(err))
	}
	f.folder = root
	return f, nil
}

// unwrapPath removes the name from an error, as the message has it already.
func unwrapPath(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

func (f *pictureFinder) close() {
	if f.folder != nil {
		_ = f.folder.Close()
	}
}

// find returns the picture of an item, or nil if it has none.
func (f *pictureFinder) find(it *db.Item) (*picture, error) {
	if decoderOf(it.Payload) != nil {
		return &picture{it.Payload}, nil
	}
	if f.folder == nil {
		return nil, nil
	}
	var names []string
	for _, field := range f.fields {
		if name, is := it.Fields[field].(string); is {
			names = append(names, name)
		}
	}
	for _, name := range append(names, it.Key) {
		for _, file := range filesNamed(name) {
			p, err := f.read(file)
			if p != nil || err != nil {
				return p, err
			}
		}
	}
	return nil, nil
}

// filesNamed returns the files below the folder that a value may name: a path, the path
// of a URL, or the end of either, as the folder may be any folder on that path.
func filesNamed(value string) (files []string) {
	if strings.Contains(value, "://") {
		u, err := url.Parse(value)
		if err != nil {
			return nil
		}
		value = u.Path
	}
	const most = 16 // files to look for
	value = strings.TrimLeft(path.Clean(strings.ReplaceAll(value, `\`, "/")), "/")
	for len(files) < most {
		// A path that is not local names no file below the folder; os.Root would refuse
		// it, too.
		if local := filepath.FromSlash(value); filepath.IsLocal(local) && local != "." {
			files = append(files, local)
		}
		_, rest, more := strings.Cut(value, "/")
		if !more {
			break
		}
		value = rest
	}
	return files
}

// read returns the picture in a file, or nil if there is no such file or it is no
// picture.
func (f *pictureFinder) read(name string) (*picture, error) {
	// Opening a pipe could block for ever.
	info, err := f.folder.Stat(name)
	if err != nil || !info.Mode().IsRegular() {
		return nil, nil
	}
	file, err := f.folder.Open(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, unwrapPath(err))
	}
	defer file.Close()
	head := make([]byte, pictureHead)
	n, err := io.ReadFull(file, head)
	if head = head[:n]; decoderOf(head) == nil {
		return nil, nil
	}
	if info.Size() > maxPictureBytes {
		return nil, fmt.Errorf("%s has %s, more than %s", name, term.Size(info.Size()), term.Size(maxPictureBytes))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	rest, err := io.ReadAll(io.LimitReader(file, maxPictureBytes))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, unwrapPath(err))
	}
	return &picture{append(head, rest...)}, nil
}

// A picture is the bytes of a PNG, JPEG or GIF.
type picture struct{ data []byte }

// A pictureDecoder decodes one format. image.Decode would accept every format that some
// package has registered.
type pictureDecoder struct {
	magic  string
	config func(io.Reader) (image.Config, error)
	decode func(io.Reader) (image.Image, error) // the first picture of several
}

var pictureDecoders = []pictureDecoder{
	{"\x89PNG\r\n\x1a\n", png.DecodeConfig, png.Decode},
	{"\xff\xd8\xff", jpeg.DecodeConfig, jpeg.Decode},
	{"GIF87a", gif.DecodeConfig, gif.Decode},
	{"GIF89a", gif.DecodeConfig, gif.Decode},
}

// pictureHead is the number of bytes that tell formats apart.
const pictureHead = 16

// decoderOf returns the decoder for data, or nil if it is no picture.
func decoderOf(data []byte) *pictureDecoder {
	for i, d := range pictureDecoders {
		if bytes.HasPrefix(data, []byte(d.magic)) {
			return &pictureDecoders[i]
		}
	}
	return nil
}

// thumbnail returns the picture, shrunk to fit a square of box pixels.
func (p *picture) thumbnail(ctx context.Context, box int) (image.Image, error) {
	d := decoderOf(p.data)
	config, err := d.config(bytes.NewReader(p.data))
	if err != nil {
		return nil, fmt.Errorf("it is damaged: %w", err)
	}
	if config.Width < 1 || config.Height < 1 || config.Width > maxPicturePixels/config.Height {
		return nil, fmt.Errorf("%d x %d pixels, more than %d million", config.Width, config.Height, maxPicturePixels/1_000_000)
	}
	img, err := d.decode(interruptible{ctx, bytes.NewReader(p.data)})
	if err != nil {
		return nil, fmt.Errorf("it is damaged: %w", err)
	}
	return upright(shrunk(img, box), orientation(p.data)), nil
}

// interruptible reads until the context ends: some pictures take long to decode.
type interruptible struct {
	ctx context.Context
	r   *bytes.Reader
}

func (r interruptible) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p[:min(len(p), 4096)])
}

// shrunk returns an image that fits a square; a small image is not enlarged.
func shrunk(img image.Image, box int) *image.NRGBA {
	b := img.Bounds()
	width, height := b.Dx(), b.Dy()
	if most := max(width, height); most > box {
		width, height = max(1, width*box/most), max(1, height*box/most)
	}
	out := image.NewNRGBA(image.Rect(0, 0, width, height))
	scaler := draw.Scaler(draw.BiLinear)
	if width == b.Dx() && height == b.Dy() {
		scaler = draw.NearestNeighbor
	}
	scaler.Scale(out, out.Bounds(), img, b, draw.Src, nil)
	return out
}
