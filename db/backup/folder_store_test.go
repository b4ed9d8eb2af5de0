package backup_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/db/backup"
	"github.com/fddhdb/fddhdb/db/backup/storetest"
	"github.com/fddhdb/fddhdb/internal/effort"
)

// A folder keeps every promise of a Store.
func TestFolderIsAStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) backup.Store {
		s, err := backup.Folder(filepath.Join(t.TempDir(), "backups"))
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
}

// It keeps them if it is a link itself, and if folders in it are links.
func TestLinkedFolderIsAStore(t *testing.T) {
	effort.Slow(t)
	storetest.Run(t, func(t *testing.T) backup.Store {
		dir := t.TempDir()
		root := filepath.Join(dir, "backups")
		folders := map[string]string{root: "root"}
		for _, name := range []string{"objects", "objects/ab", "backups", "x", "o"} {
			folders[filepath.Join(root, filepath.FromSlash(name))] = strings.ReplaceAll(name, "/", "-")
		}
		for _, link := range slices.Sorted(maps.Keys(folders)) {
			to := filepath.Join(dir, "elsewhere", folders[link])
			if err := os.MkdirAll(to, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(to, link); err != nil {
				t.Skip(err)
			}
		}
		s, err := backup.Folder(root)
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
}

// Names that one system cannot have are refused on all.
func TestNamesThatWindowsHasNot(t *testing.T) {
	for _, name := range []string{"a.", "a./b", "nul", "a/con", "com1.txt", "x/lpt9.a.b"} {
		if err := backup.CheckName(name); !errors.Is(err, backup.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"a.b", "null", "com", "com1a", "x/nul-1"} {
		if err := backup.CheckName(name); err != nil {
			t.Error(err)
		}
	}
}
