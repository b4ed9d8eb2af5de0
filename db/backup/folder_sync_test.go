package backup

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// An object is durable when Put returns: its bytes before it has its name, and then its name, and those of
// the folders that are new. If it cannot be made durable there is none.
func TestObjectsInAFolderAreSynced(t *testing.T) {
	defer func() { fsync = (*os.File).Sync }()
	root := filepath.Join(t.TempDir(), "backups")
	s, err := Folder(root)
	if err != nil {
		t.Fatal(err)
	}
	var synced []string
	fsync = func(f *os.File) error {
		name := f.Name()
		if info, err := f.Stat(); err == nil && !info.IsDir() {
			name = "the object"
			if _, err := os.Stat(filepath.Join(root, "objects", "ab", "x")); err == nil {
				t.Error("the object has its name before it is synced")
			}
		}
		synced = append(synced, strings.TrimPrefix(name, root))
		return f.Sync()
	}
	if err := s.Put(t.Context(), "objects/ab/x", strings.NewReader("content"), 7); err != nil {
		t.Fatal(err)
	}
	want := []string{"the object"}
	if runtime.GOOS != "windows" {
		want = []string{filepath.Dir(root), "", "/objects", "the object", "/objects", "/objects/ab"}
	}
	if !slices.Equal(synced, want) {
		t.Errorf("synced are %q, want %q", synced, want)
	}
	refused := errors.New("refused")
	fsync = func(*os.File) error { return refused }
	if err := s.Put(t.Context(), "objects/ab/y", strings.NewReader("content"), 7); !errors.Is(err, refused) {
		t.Errorf("an object that cannot be synced: %v", err)
	}
	if r, err := s.Get(context.Background(), "objects/ab/y"); err == nil {
		t.Error("it is there:", r.Close())
	}
}
