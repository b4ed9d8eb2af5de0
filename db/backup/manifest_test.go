package backup

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func aManifest() *Manifest {
	at := time.Date(2026, 11, 21, 17, 1, 12, 345e6, time.UTC)
	p := func(h byte) Piece { return newPiece(sum([]byte{h}), newID(at), 0) }
	return &Manifest{
		Version: Version, ID: newID(at), Time: at, Database: "0123456789abcdef0123456789abcdef", Sequence: 12,
		BytesTotal: pieceBytes + 7 + 5, BytesNew: 3,
		Files: []File{
			{"FDDHDB", 5, []Piece{p(1)}}, {"store/000005.sst", pieceBytes + 7, []Piece{p(2), p(3)}},
			{"store/marker.manifest.000001.MANIFEST-000001", 0, []Piece{}},
		},
	}
}

func TestManifestsOfStrangers(t *testing.T) {
	long := strings.Repeat("a", 201)
	for _, path := range []string{
		"", "/", "/etc/passwd", "../x", "store/../../x", "store/./x", "store//x", "store/", ".hidden",
		"store/.x", "C:/x", "c:x", `store\x`,
		"store/x\x00", "store/\u00e4", "con", "store/NUL.sst", "com1", "LPT9.txt", "store/x.", "store/ x",
		"store/x ", "a~1", long, "x\ny",
	} {
		m := aManifest()
		m.Files[0].Path = path
		checkRefused(t, fmt.Sprintf("path %.20q", path), m)
	}
	for what, change := range map[string]func(m *Manifest){
		"a path twice":            func(m *Manifest) { m.Files[2].Path = "FDDHDB" },
		"paths but for case":      func(m *Manifest) { m.Files[2].Path = "STORE/000005.SST" },
		"a file that is a folder": func(m *Manifest) { m.Files[0].Path = "store" },
		"a folder but for case":   func(m *Manifest) { m.Files[0].Path = "Store" },
		"no id":                   func(m *Manifest) { m.ID = "" },
		"an id that is a path":    func(m *Manifest) { m.ID = "../../" + m.ID },
		"another time":            func(m *Manifest) { m.Time = m.Time.Add(time.Hour) },
		"a negative size":         func(m *Manifest) { m.Files[2].Size = -1 },
		"a huge size":             func(m *Manifest) { m.Files[0].Size = 1 << 62 },
		"a size of other pieces":  func(m *Manifest) { m.Files[1].Size = 8 },
		"another total":           func(m *Manifest) { m.BytesTotal++ },
		"no piece":                func(m *Manifest) { m.Files[0].Pieces[0] = "" },
		"a piece that is a path":  func(m *Manifest) { m.Files[0].Pieces[0] = "../../backups/x" },
		"version 0":               func(m *Manifest) { m.Version = 0 },
		"a UUID of a novel":       func(m *Manifest) { m.Database = long },
	} {
		m := aManifest()
		change(m)
		checkRefused(t, what, m)
	}
	m := aManifest()
	m.Version = 2
	b, _ := json.Marshal(m)
	if _, err := DecodeManifest(b); !errors.Is(err, ErrVersion) ||
		!strings.Contains(err.Error(), "use a newer one") {
		t.Errorf("a newer version: %v", err)
	}
	m = aManifest()
	b, _ = json.Marshal(m)
	if _, err := DecodeManifest(b); err != nil {
		t.Errorf("as it should be: %v", err)
	}
}

func checkRefused(t *testing.T, what string, m *Manifest) {
	t.Helper()
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := DecodeManifest(b); !errors.Is(err, ErrDamaged) ||
		strings.Count(err.Error(), "fddhdb: ") != 1 {
		t.Errorf("%s: %v", what, err)
	}
}

// Whatever the bytes, a manifest that is read has only paths inside a folder, each of
// another file, and pieces that are objects.
func FuzzManifest(f *testing.F) {
	b, err := json.Marshal(aManifest())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"version":1,"files":[null,{"path":"../x","size":1,"pieces":[null]}]}`))
	f.Add([]byte(`{"version":1,"files":[{"path":"a","size":0},{"path":"A/b","size":0}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := DecodeManifest(b)
		if err != nil {
			if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrVersion) {
				t.Fatal(err)
			}
			return
		}
		seen := map[string]bool{}
		for _, f := range m.Files {
			if !filepath.IsLocal(filepath.FromSlash(f.Path)) || filepath.IsAbs(f.Path) ||
				seen[strings.ToLower(f.Path)] {
				t.Fatalf("path %q", f.Path)
			}
			seen[strings.ToLower(f.Path)] = true
			for i, p := range f.Pieces {
				if q, ok := pieceOf(p.object()); !ok || q != p || f.pieceSize(i) <= 0 ||
					f.pieceSize(i) > pieceBytes || CheckName(p.object()) != nil {
					t.Fatalf("piece %q", p)
				}
				if sum := p.Hash(); !strings.HasPrefix(string(p), hex.EncodeToString(sum[:])) ||
					!validID.MatchString(p.owner()) {
					t.Fatalf("piece %q", p)
				}
			}
		}
		again, err := m.encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := DecodeManifest(again); err != nil {
			t.Fatal(err)
		}
	})
}

// Whichever bit of a manifest is flipped, it still means the same or is refused.
func TestFlippedBitsInAManifest(t *testing.T) {
	whole, err := aManifest().encode()
	if err != nil {
		t.Fatal(err)
	}
	want, err := DecodeManifest(whole)
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for i := range 8 * len(whole) {
		b := bytes.Clone(whole)
		b[i/8] ^= 1 << (i % 8)
		m, err := DecodeManifest(b)
		switch {
		case errors.Is(err, ErrDamaged):
			refused++
		case err != nil:
			t.Errorf("bit %d of byte %d: %v", i%8, i/8, err)
		case !reflect.DeepEqual(m, want):
			t.Errorf("bit %d of byte %d: %+v", i%8, i/8, m)
		}
	}
	if refused < 7*(len(whole)-sumBytes) {
		t.Errorf("%d of %d flipped bits refused", refused, 8*len(whole))
	}
}

// A manifest of a build that wrote no sum is read.
func TestManifestWithoutSum(t *testing.T) {
	b, err := json.Marshal(aManifest())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := DecodeManifest(b); err != nil {
		t.Error(err)
	}
}
