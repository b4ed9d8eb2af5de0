package main

import (
	"context"
	"errors"
	"fmt"
	"image"
	_ "image/gif" // these decode files
	_ "image/jpeg"
	_ "image/png"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fddhdb/fddhdb/db"
)

// mostPixels keeps a damaged or hostile file from taking all memory.
const mostPixels = 100_000_000

// lookAtFolder looks at the JPEG, PNG and GIF files in a folder and below it. Pictures
// that are stored already are passed over. What cannot be read is named on stderr.
func (f *finder) lookAtFolder(ctx context.Context, folder string, stderr io.Writer) error {
	return filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			fmt.Fprintf(stderr, "neardup: %s is left out: %v\n", path, err)
			return nil
		}
		if !entry.Type().IsRegular() || !slices.Contains([]string{".jpg", ".jpeg", ".png", ".gif"},
			strings.ToLower(filepath.Ext(path))) {
			return nil
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		switch _, err := f.c.Get(ctx, name); {
		case errors.Is(err, db.ErrInvalid): // the name is too long for a key, or no text
			fmt.Fprintf(stderr, "neardup: %s is left out: %v\n", path, err)
			return nil
		case !errors.Is(err, db.ErrNotFound): // it is stored already, unless something is wrong
			return err
		}
		picture, err := read(path)
		if err != nil {
			fmt.Fprintf(stderr, "neardup: %s is left out: %v\n", path, err)
			return nil
		}
		return f.look(ctx, name, picture)
	})
}

func read(path string) (image.Image, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return decode(file)
}

// decode returns a picture with pixels.
func decode(file io.ReadSeeker) (image.Image, error) {
	size, _, err := image.DecodeConfig(file)
	if err != nil {
		return nil, err
	}
	if int64(size.Width)*int64(size.Height) > mostPixels {
		return nil, fmt.Errorf("it has %d x %d pixels, more than %d", size.Width, size.Height, mostPixels)
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	picture, _, err := image.Decode(file)
	if err == nil && picture.Bounds().Empty() {
		err = errors.New("it has no pixels")
	}
	return picture, err
}
