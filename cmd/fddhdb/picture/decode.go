package picture

import (
	"errors"
	"fmt"
	"image"
	_ "image/gif"
	_ "image/jpeg"
	_ "image/png"
	"io"
	"io/fs"
	"os"
	"sync"

	_ "golang.org/x/image/webp"
)

// Limits of pictures that are decoded. A decoder takes up to 8 bytes a pixel.
const (
	maxPixels  = 100_000_000
	manyPixels = 25_000_000 // pictures with more are decoded one at a time
	maxFile    = 1 << 30
)

// big is held while a picture with many pixels is decoded.
var big sync.Mutex

// Decode decodes a JPEG, PNG, GIF or WebP; of an animated GIF the first picture. It refuses pictures with
// more than 100 million pixels before it takes memory for them.
func Decode(from io.ReadSeeker) (image.Image, error) {
	config, _, err := image.DecodeConfig(from)
	if errors.Is(err, image.ErrFormat) {
		return nil, errors.New("it is no JPEG, PNG, GIF or WebP")
	}
	if err != nil {
		return nil, undecodable(err)
	}
	pixels := int64(config.Width) * int64(config.Height)
	if pixels > maxPixels {
		return nil, fmt.Errorf("the picture has %d x %d pixels, and at most %d are read", config.Width,
			config.Height, maxPixels)
	}
	if pixels > manyPixels {
		big.Lock()
		defer big.Unlock()
	}
	if _, err := from.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	m, _, err := image.Decode(from)
	if err != nil {
		return nil, undecodable(err)
	}
	return m, nil
}

func undecodable(err error) error { return fmt.Errorf("it is damaged or cut short: %w", err) }

// ReadFile decodes the picture in a file, which has to be a regular one, and returns the size of the file.
// Errors lack the path.
func ReadFile(path string) (_ image.Image, size int64, _ error) {
	info, err := os.Stat(path) // to open a pipe could block for ever
	switch {
	case err != nil:
		return nil, 0, Reason(err)
	case !info.Mode().IsRegular():
		return nil, 0, errors.New("it is not a regular file")
	case info.Size() == 0:
		return nil, 0, errors.New("the file is empty")
	case info.Size() > maxFile:
		return nil, 0, fmt.Errorf("the file has %d bytes, and at most %d are read", info.Size(), maxFile)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, Reason(err)
	}
	defer f.Close()
	m, err := Decode(f)
	return m, info.Size(), err
}

// Reason returns the error of a file without its path.
func Reason(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
