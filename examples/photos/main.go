package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/fddhdb/fddhdb/files/npy"
)

func main() {
	err := command(os.Args[1:], os.Stdout, os.Stderr)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "photos:", err)
		os.Exit(1)
	}
}

// command runs a command line. args does not have the name of the program.
func command(args []string, stdout, stderr io.Writer) error {
	f := flag.NewFlagSet("photos", flag.ContinueOnError)
	f.SetOutput(stderr)
	ask := f.String("ask", "", "question: write its vector to a .npy file")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() != 1 {
		return errors.New(`a folder is expected, photos DIR, or with -ask a file, photos -ask "a dog at dusk" FILE.npy`)
	}
	if *ask != "" {
		x, unknown := textVector(*ask)
		if len(unknown) > 0 {
			fmt.Fprintf(stderr, "photos: no caption has these words, so they say nothing: %q\n", unknown)
		}
		return npy.WriteAll(f.Arg(0), [][]float32{x})
	}
	dir := f.Arg(0)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	if err := writeLines(filepath.Join(dir, "words.txt"), vocabulary()); err != nil {
		return err
	}
	camera := newCamera()
	for _, roll := range []struct {
		name   string
		photos int
		tint   [3]float64
	}{{"photos", 1000, daylight}, {"test", 200, daylight}, {"later", 300, warm}, {"latertest", 100, warm}} {
		camera.tint = roll.tint
		if err := writeRoll(filepath.Join(dir, roll.name), camera.take(roll.photos)); err != nil {
			return err
		}
		fmt.Fprintf(stdout, "%d photos in %s\n", roll.photos,
			filepath.ToSlash(filepath.Join(dir, roll.name+"_*")))
	}
	return nil
}
