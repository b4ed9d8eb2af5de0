package db_test

import (
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/store"
)

// Everything that is stored has a version, and each stands in a file of this module. A number
// that changes makes databases that older versions cannot read, or makes this one unable to
// read theirs. So it changes only together with the format of the database, or where older
// versions refuse the new record by its name (TestNewerFormatsAreNamed): CONTRIBUTING.md has
// the steps, "A format step", and changing the number here is the last but one.
var pinned = []struct {
	file, pattern, want string
}{
	{"db/internal/record/identity.go", `FormatFirst += (\d+)`, "0"},
	{"db/internal/record/identity.go", `FormatIdentity += (\d+)`, "1"},
	{"db/internal/record/identity.go", `FormatMarks += (\d+)`, "2"},
	{"db/internal/record/identity.go", `MinFormat += (\w+)`, "FormatFirst"},
	{"db/internal/record/identity.go", `NewestFormat += (\w+)`, "FormatMarks"},
	{"db/internal/record/identity.go", `DescriptorVersion = (\d+)`, "0"},
	{"db/internal/record/descriptor.go", `VersionIndexOnly = (\d+)`, "1"},
	{"db/internal/record/descriptor.go", `VersionMetrics   = (\d+)`, "2"},
	{"db/internal/record/descriptor.go", `VersionIndexes   = (\d+)`, "3"},
	{"db/internal/record/descriptor.go", `VersionEncoders  = (\d+)`, "4"},
	{"db/internal/record/descriptor.go", `VersionTimes     = (\d+)`, "5"},
	{"db/internal/record/vector_index.go", `IndexVersion = (\d+)`, "0"},
	{"db/internal/store/commits_file.go", `commitsVersion = (\d+)`, "0"},
	{"db/internal/store/commits_file.go", `commitsMagic   = "(\w+)"`, "FDHC"},
	{"db/internal/bulk/spool/folder.go", `filesVersion = (\d+)`, "2"},
	{"db/internal/bulk/spool/chunk.go", `chunkMagic       = (\w+)`, "0x46494d43"},
	{"db/internal/store/store.go", `PebbleFormat = pebble\.(\w+)`, "FormatValueSeparation"},
	{"db/internal/store/store.go", `mergerName = "(.*)"`, "fddhdb.blocks-and-layers"},
	{"db/backup/manifest.go", `Version = (\d+)`, "1"},
	{"codec/counters.go", `countersVersion = (\d+)`, "4"},
	{"codec/block.go", `blockVersion = (\d+)`, "1"},
	{"codec/layer.go", `layerVersion = (\d+)`, "1"},
	{"db/internal/search/cursor.go", `cursorVersion = (\d+)`, "2"},
	{"codec/record.go", `recordVersion = (\d+)`, "1"},
	{"codec/lesson.go", `departureVersion = (\d+)`, "1"},
	{"codec/features.go", `featuresDense  = (\d+)`, "1"},
	{"codec/features.go", `featuresSparse = (\d+)`, "2"},
	{"model/pass.go", `passMagic   = "(\w+)"`, "FDHQ"},
	{"model/pass.go", `passVersion = (\d+)`, "2"},
	{"model/pass.go", `sumMagic   = "(\w+)"`, "FDHP"},
	{"model/pass.go", `sumVersion = (\d+)`, "0"},
	{"model/file.go", `fileMagic   = "(\w+)"`, "FDHF"},
	{"model/file.go", `fileVersion = (\d+)`, "0"},
	{"model/marshal.go", `modelMagic        = "(\w+)"`, "FDHM"},
	{"model/marshal.go", `modelVersion      = (\d+)`, "3"},
	{"model/marshal.go", `codesModelVersion = (\d+)`, "2"},
	{"model/marshal.go", `codesVersion      = (\d+)`, "0"},
	{"model/marshal.go", `statisticsMagic   = "(\w+)"`, "FDHS"},
	{"model/marshal.go", `statisticsVersion = (\d+)`, "1"},
	{"model/labelfree_wire.go", `labelFreeVersion = (\d+)`, "4"},
	{"model/revision.go", `revisionMagic   = "(\w+)"`, "FDHR"},
	{"model/revision.go", `revisionVersion = (\d+)`, "1"},
}

func TestVersionsArePinned(t *testing.T) {
	for _, p := range pinned {
		b, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(p.file)))
		if err != nil {
			t.Fatal(err)
		}
		m := regexp.MustCompile(`\b` + p.pattern).FindStringSubmatch(string(b))
		if m == nil || m[1] != p.want {
			t.Errorf("%s: %q is not %s any more (%q): the recipe for a format step in CONTRIBUTING.md says what has to be done", p.file, p.pattern, p.want, m)
		}
	}
	if n := int(pebble.FormatValueSeparation); n != 24 {
		t.Errorf("Pebble's FormatValueSeparation is %d, not 24", n)
	}
}

// Every version constant of the packages that store something is in the list.
func TestNoVersionIsForgotten(t *testing.T) {
	// Of names of files, and what is none of a format.
	known := []string{"ErrVersion", "FormatMajorVersion", "TableFormat"}
	for _, p := range pinned {
		known = append(known, strings.Fields(p.pattern)[0])
	}
	declared := regexp.MustCompile(`(?m)^(?:const)?\s+(\w*(?:Version|Magic))\s+=`)
	for _, dir := range []string{"codec", "model", "db", "db/backup", "db/internal/record", "db/internal/store", "db/internal/search", "db/internal/bulk/spool"} {
		files, err := filepath.Glob(filepath.Join("..", filepath.FromSlash(dir), "*.go"))
		if err != nil || (len(files) == 0 && dir != "db/backup") {
			t.Fatal(dir, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range declared.FindAllStringSubmatch(string(b), -1) {
				if !slices.Contains(known, m[1]) {
					t.Errorf("%s: %s is not in the list of what is pinned", file, m[1])
				}
			}
		}
	}
}

// The format of the store counts: a marker that is behind it is the end of an interrupted
// upgrade, and is written by whoever opens the database next.
func TestMarkerThatIsBehind(t *testing.T) {
	dir := t.TempDir()
	dbkit.MustClose(t, dbkit.MustOpen(t, dir, nil))
	if err := store.WriteMarker(vfs.Default, dir, db.FormatFirst); err != nil {
		t.Fatal(err)
	}
	for _, readOnly := range []bool{true, false} {
		d := dbkit.MustOpen(t, dir, &db.Options{ReadOnly: readOnly})
		want := db.NewestFormat
		if readOnly {
			want = db.FormatFirst
		}
		if marker, err := store.ReadMarker(vfs.Default, dir); d.Format() != db.NewestFormat || marker != want || err != nil {
			t.Errorf("ReadOnly %v: format %d, the marker says %d, %v", readOnly, d.Format(), marker, err)
		}
		dbkit.MustClose(t, d)
	}
}

// A new database has what the newest format has.
func TestNewDatabaseIsOfTheNewestFormat(t *testing.T) {
	dir := t.TempDir()
	d := dbkit.MustOpen(t, dir, nil)
	if d.Format() != db.NewestFormat || !regexp.MustCompile(`^[0-9a-f]{12}4[0-9a-f]{3}[89ab][0-9a-f]{15}$`).MatchString(d.UUID()) {
		t.Errorf("format %d, UUID %q", d.Format(), d.UUID())
	}
	b, closer, err := db.State(d).Engine.DB.Get([]byte{0, 0})
	if err != nil || binary.BigEndian.Uint32(b) != db.NewestFormat {
		t.Errorf("%x, %v", b, err)
	}
	closer.Close()
	uuid := d.UUID()
	dbkit.MustClose(t, d)
	var m struct{ Format int }
	text, err := os.ReadFile(filepath.Join(dir, store.MarkerName))
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err != nil || m.Format != db.NewestFormat {
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
