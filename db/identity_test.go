package db_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/store"
)

// A new database has a UUID of its own, and keeps it.
func TestUUIDOfANewDatabase(t *testing.T) {
	dir := t.TempDir()
	d := dbkit.MustOpen(t, dir, nil)
	if !regexp.MustCompile(`^[0-9a-f]{12}4[0-9a-f]{3}[89ab][0-9a-f]{15}$`).MatchString(d.UUID()) {
		t.Errorf("UUID %q", d.UUID())
	}
	uuid := d.UUID()
	dbkit.MustClose(t, d)
	var m struct{ Format int }
	text, err := os.ReadFile(filepath.Join(dir, store.MarkerName))
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err != nil || m.Format != db.Format {
		t.Errorf("%q, %v", text, err)
	}
	d = dbkit.MustOpen(t, dir, nil)
	if d.UUID() != uuid {
		t.Errorf("UUID %q, and then %q", uuid, d.UUID())
	}
	dbkit.MustClose(t, d)
	other := dbkit.MustOpen(t, t.TempDir(), nil)
	if other.UUID() == uuid {
		t.Error("two databases have the same UUID")
	}
	dbkit.MustClose(t, other)
}
