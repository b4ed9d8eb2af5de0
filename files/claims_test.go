package files

import (
	"archive/zip"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/files/internal/matrix"
)

// lying returns an archive of one member that claims to have so many bytes.
func lying(t *testing.T, content []byte, claims uint64) string {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	f, err := w.CreateRaw(&zip.FileHeader{
		Name: "x.npy", Method: zip.Deflate,
		CompressedSize64: uint64(len(content)), UncompressedSize64: claims,
	})
	if err == nil {
		_, err = f.Write(content)
	}
	if err == nil {
		err = w.Close()
	}
	path := filepath.Join(t.TempDir(), "x.npz")
	if err == nil {
		err = os.WriteFile(path, out.Bytes(), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// A few bytes that claim to be many cost no more memory than they can expand to.
func TestArchiveThatClaimsTooMuch(t *testing.T) {
	header := buildNPY(1, dict("<f4", "False", "(1125899906842624, 1)"), nil)
	for _, claims := range []uint64{uint64(len(header)) + 1<<52, 1 << 62, 1<<64 - 1} {
		path := lying(t, header, claims)
		bounded(t, 0, 1<<20, 0, func() {
			if _, _, _, err := ReadAll(path); err == nil || !strings.Contains(err.Error(), "claims") {
				t.Errorf("%d bytes: %v", claims, err)
			}
		})
	}
}

// Any number of rows may take no bytes: they are not held at once.
func TestSparseFileOfManyEmptyRows(t *testing.T) {
	const rows = 1 << 20
	b := buildNPZ(t, zip.Deflate, csrMembers(t, rows, matrix.MaxCols, make([]int32, rows+1), nil, nil)...)
	path := filepath.Join(t.TempDir(), "x.npz")
	check(t, os.WriteFile(path, b, 0o644))
	bounded(t, len(b), 16<<20, 1, func() {
		if _, _, _, err := ReadAll(path); err == nil || !strings.Contains(err.Error(), "row by row") {
			t.Error(err)
		}
	})
}
