package backup

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A folder holds exactly the objects that were put. It refuses names that lead out of
// it, and fewer bytes than announced.
func TestFolder(t *testing.T) {
	root := filepath.Join(t.TempDir(), "a", "b")
	s, err := Folder(root)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	put := func(name, text string) error {
		return s.Put(ctx, name, bytes.NewReader([]byte(text)), int64(len(text)))
	}
	for _, name := range []string{"", "/x", "../x", "a/../../x", "a//b", "a/", ".x", "a/.x", "A", "a\\b",
		"a b"} {
		if err := put(name, "x"); !errors.Is(err, ErrInvalid) {
			t.Errorf("put %q: %v", name, err)
		}
		if _, err := s.Get(ctx, name); !errors.Is(err, ErrInvalid) {
			t.Errorf("get %q: %v", name, err)
		}
	}
	for _, text := range []string{"one", "another"} {
		if err := put("objects/ab/cd", text); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Put(ctx, "short", bytes.NewReader([]byte("x")), 2); err == nil {
		t.Error("less than was announced was put")
	}
	var all []Object
	if err := s.List(ctx, "", func(o Object) error { all = append(all, o); return nil }); err != nil {
		t.Fatal(err)
	}
	if len(all) != 1 || all[0].Name != "objects/ab/cd" || all[0].Size != 7 ||
		time.Since(all[0].Modified) > time.Hour {
		t.Errorf("%+v", all)
	}
	r, err := s.Get(ctx, "objects/ab/cd")
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(r)
	if r.Close(); string(b) != "another" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	for range 2 {
		if err := s.Delete(ctx, "objects/ab/cd"); err != nil {
			t.Error(err)
		}
		if _, err := s.Get(ctx, "objects/ab/cd"); !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	}
	left, err := os.ReadDir(filepath.Join(root, "objects", incoming))
	if err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

// A folder that holds something else does not become a repository.
func TestOtherFoldersStay(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "thesis.tex"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	s, err := Folder(root)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Create(t.Context(), s, Manifest{}, nil, CreateOptions{}); !errors.Is(err, ErrNotRepository) {
		t.Errorf("a backup: %v", err)
	}
	if _, err := Prune(t.Context(), s, PruneOptions{}); !errors.Is(err, ErrNotRepository) {
		t.Errorf("a prune: %v", err)
	}
	if entries, err := os.ReadDir(root); len(entries) != 1 || err != nil {
		t.Errorf("%v, %v", entries, err)
	}
}
