// Neardup finds copies of pictures: smaller, darker, cropped or saved badly. It paints 300 pictures and
// copies of some, stores the PDQ hash of each as its code, and lists the groups of codes that are near each
// other. Nothing is learned.
//
//	go run ./examples/neardup
//	go run ./examples/neardup FOLDER
//
// The second form saves the pictures in a folder, so that you can try the command with them:
//
//	fddhdb import copies.db --init --pictures FOLDER --hash pdq
//	fddhdb dups copies.db
//
// The program imports db and codec/perceptual. Example runs it and has its output.
package main

import (
	"context"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"iter"
	"os"
	"path/filepath"

	"github.com/fddhdb/fddhdb/codec/perceptual"
	"github.com/fddhdb/fddhdb/db"
)

func main() {
	var err error
	if len(os.Args) > 1 {
		err = save(os.Args[1], paintings())
	} else {
		err = find(context.Background(), paintings(), os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "neardup:", err)
		os.Exit(1)
	}
}

// find lists the groups of copies among pictures, the largest picture of each first.
func find(ctx context.Context, pictures iter.Seq2[string, image.Image], out io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "neardup")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	d, err := db.Open(dir, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	pdq := perceptual.Named("pdq")
	c, err := d.CreateCollection(ctx, "main", db.Schema{Bits: pdq.Bits, Hash: pdq.Name,
		Fields: []db.Field{{Name: "width", Type: db.Int}}})
	if err != nil {
		return err
	}
	batch := d.NewBatch()
	for name, picture := range pictures {
		code, _ := pdq.OfPicture(picture)
		err := batch.Put(c, &db.Item{Key: name, Code: code,
			Fields: map[string]any{"width": int64(picture.Bounds().Dx())}})
		if err != nil {
			return err
		}
	}
	if err := batch.Commit(ctx); err != nil {
		return err
	}
	like := db.Likeness{Radius: pdq.Near}
	for group, err := range c.Groups(ctx, db.GroupQuery{Likeness: like, Keep: "max width"}) {
		if err != nil {
			return err
		}
		for _, copied := range group.Items[1:] {
			fmt.Fprintf(out, "%s is like %s: %d of %d bits differ\n", copied.Key, group.Items[0].Key,
				copied.Distance, pdq.Bits)
		}
	}
	return nil
}

// save writes pictures to a folder, which it makes.
func save(folder string, pictures iter.Seq2[string, image.Image]) error {
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	for name, picture := range pictures {
		f, err := os.Create(filepath.Join(folder, name+".png"))
		if err != nil {
			return err
		}
		if err := errors.Join(png.Encode(f, picture), f.Close()); err != nil {
			return err
		}
	}
	return nil
}
