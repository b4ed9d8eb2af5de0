package backup_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/fddhdb/fddhdb/db/backup"
	"github.com/fddhdb/fddhdb/db/backup/storetest"
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
