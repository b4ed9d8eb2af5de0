package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"image"
	"io"
	"os"

	"github.com/fddhdb/fddhdb/db"
)

func main() {
	err := command(context.Background(), os.Args[1:], os.Stdout, os.Stderr)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "neardup:", err)
		os.Exit(1)
	}
}

// command runs a command line. args does not have the name of the program.
func command(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	flags := flag.NewFlagSet("neardup", flag.ContinueOnError)
	flags.SetOutput(stderr)
	keep := flags.String("db", "", "keep the database in `DIR`, or go on with the one that is there")
	if err := flags.Parse(args); err != nil {
		return err
	}
	folder := flags.Arg(0)
	if flags.NArg() > 1 || *keep != "" && folder == "" {
		return errors.New("one folder of pictures is expected, neardup [-db DIR] FOLDER; neardup alone paints pictures")
	}
	if folder != "" {
		if info, err := os.Stat(folder); err != nil {
			return err
		} else if !info.IsDir() {
			return fmt.Errorf("%s is a file, and a folder of pictures is expected", folder)
		}
	}
	dir := *keep
	if dir == "" {
		if dir, err = os.MkdirTemp("", "fddhdb-neardup-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	d, err := db.Open(dir, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	c, err := d.Collection("main")
	if errors.Is(err, db.ErrNotFound) {
		c, err = d.CreateCollection(ctx, "main", db.Schema{Bits: bits})
	}
	if err != nil {
		return err
	}
	f := &finder{c: c, out: stdout}
	if folder == "" {
		return f.lookAtPaintings(ctx)
	}
	if err := f.lookAtFolder(ctx, folder, stderr); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "New pictures: %d. Like another: %d.\n", f.looked, f.alike)
	if *keep != "" {
		fmt.Fprintf(stdout, "To see them: fddhdb explore %q --pictures %q --open\n", dir, folder)
	}
	return nil
}

const (
	bits   = 64 // of a hash
	radius = 8  // the hashes of a picture and its copy differ in so many bits at most
)

// A finder compares pictures with those that are stored, and stores them.
type finder struct {
	c             *db.Collection
	out           io.Writer
	looked, alike int // pictures so far, and those of them that look like another
}

// look says which stored picture looks most like this one, if one does, and stores it.
func (f *finder) look(ctx context.Context, name string, picture image.Image) error {
	f.looked++
	code := hash(picture)
	near, err := f.c.SearchRadius(ctx, db.Query{Code: code}, radius)
	if err != nil {
		return err
	}
	defer near.Close()
	for hit, err := range near.Hits(ctx) { // the nearest first
		if err != nil {
			return err
		}
		f.alike++
		fmt.Fprintf(f.out, "%s looks like %s: distance %d of %d bits\n", name, hit.Key, hit.Distance, bits)
		break
	}
	_, err = f.c.Put(ctx, &db.Item{Key: name, Code: code})
	return err
}
