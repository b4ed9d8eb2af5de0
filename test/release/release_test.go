package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/internal/effort"
)

// The same files give the same archive, byte for byte, and unpacking returns them.
func TestArchives(t *testing.T) {
	at := time.Date(2026, 3, 4, 5, 6, 8, 0, time.UTC)
	files := []file{{"fddhdb", 0o755, []byte("program")},
		{"completion/_fddhdb", 0o644, bytes.Repeat([]byte("x"), 100_000)}}
	want := map[string]string{"f-1/fddhdb": "program", "f-1/completion/_fddhdb": string(files[1].data)}
	for name, pack := range map[string]func(io.Writer, string, time.Time, []file) error{"tar": packTar,
		"zip": packZip} {
		var first, second bytes.Buffer
		for _, b := range []*bytes.Buffer{&first, &second} {
			if err := pack(b, "f-1", at, files); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Errorf("%s: two archives of the same files differ", name)
		}
		got := untar
		if name == "zip" {
			got = unzip
		}
		if all := got(t, first.Bytes(), at); !maps.Equal(all, want) {
			t.Errorf("%s: %q", name, all)
		}
	}
}

func untar(t *testing.T, b []byte, at time.Time) map[string]string {
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil || !h.ModTime.Equal(at) || h.Uname != "" || h.Uid != 0 {
			t.Errorf("%+v, %v", h, err)
		}
		if want := int64(0o644); filepath.Base(h.Name) != "fddhdb" && h.Typeflag == tar.TypeReg &&
			h.Mode != want {
			t.Errorf("%s has mode %o", h.Name, h.Mode)
		}
		all[h.Name] = string(data)
	}
}

func unzip(t *testing.T, b []byte, at time.Time) map[string]string {
	z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil || !f.Modified.Equal(at) {
			t.Errorf("%s: %v, %v", f.Name, f.Modified, err)
		}
		all[f.Name] = string(data)
	}
	return all
}

// Two clones in different places build the same release.
func TestReleaseIsReproducible(t *testing.T) {
	if !effort.Long() { // in two clones
		t.Skip("takes minutes: -long")
	}
	root, err := output(t.Context(), "git", "rev-parse", "--show-toplevel")
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]string{}
	for _, name := range []string{"a", "somewhere else"} {
		clone := filepath.Join(t.TempDir(), name)
		out := filepath.Join(t.TempDir(), "dist")
		for _, args := range [][]string{
			{"git", "clone", "-q", root, clone},
			{"go", "-C", filepath.Join(clone, "test"), "run", "./release", "-out", out},
		} {
			if said, err := exec.CommandContext(t.Context(), args[0],
				args[1:]...).CombinedOutput(); err != nil {
				t.Fatalf("%q: %v\n%s", args, err, said)
			}
		}
		// For each platform an archive and a wheel; and the sums.
		files, err := filepath.Glob(filepath.Join(out, "*"))
		if err != nil || len(files) != 2*len(platforms)+1 {
			t.Fatalf("%q, %v", files, err)
		}
		if said, err := exec.CommandContext(t.Context(), "sh", "-c",
			"cd \"$0\" && sha256sum --strict -c SHA256SUMS", out).CombinedOutput(); err != nil ||
			bytes.Count(said, []byte(": OK")) != len(files)-1 {
			t.Errorf("SHA256SUMS: %v\n%s", err, said)
		}
		for _, path := range files {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			base, sum := filepath.Base(path), fmt.Sprintf("%x", sha256.Sum256(b))
			if sums[base] != "" && sums[base] != sum {
				t.Errorf("%s differs between two clones", base)
			}
			sums[base] = sum
		}
		if len(sums) != len(files) {
			t.Errorf("the clones name their files differently: %q", sums)
		}
	}
}
