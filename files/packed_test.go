package files

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/fddhdb/fddhdb/files/internal/matrix"
	"github.com/fddhdb/fddhdb/files/table"
)

func zipped(t tester, b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_ = must(w.Write(b))(t)
	check(t, w.Close())
	return out.Bytes()
}

// packed returns a file in all compressed forms, by the extension: .gz of two members, too.
func packed(t tester, b []byte) map[string][]byte {
	z := must(zstd.NewWriter(nil))(t)
	return map[string][]byte{
		".gz":  append(zipped(t, b[:len(b)/2]), zipped(t, b[len(b)/2:])...),
		".zst": z.EncodeAll(b, nil),
		".GZ":  zipped(t, b),
	}
}

// Every kind of file can be compressed, and gives what it gives without.
func TestPacked(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		check(t, os.WriteFile(path, b, 0o666))
		return path
	}
	for name, content := range map[string][]byte{
		"x.npy":    build(t, 1, "<f4", "True", "(2, 3)", []float32{1, 4, 2, 5, 3, 6}),
		"x.csv":    []byte("1,2,3\n4,5,6\n"),
		"x.tsv":    []byte("1\t2\t3\n4\t5\t6\n"),
		"x.jsonl":  []byte("[1,2,3]\n[4,5,6]\n"),
		"x.ndjson": []byte("[1,2,3]\n[4,5,6]\n"),
		"x.json":   []byte("[[1,2,3],\n [4,5,6]]\n"),
		"y.json":   []byte("[1,2,3]\n[4,5,6]\n"),
	} {
		for ext, b := range packed(t, content) {
			data, rows, cols, err := ReadAll(write(name+ext, b))
			if err != nil || rows != 2 || cols != 3 || !slices.Equal(data, []float32{1, 2, 3, 4, 5, 6}) {
				t.Errorf("%s: %v, %d x %d, %v", name+ext, data, rows, cols, err)
			}
		}
	}
	for ext, b := range packed(t, []byte("cat, pet\ndog\n")) {
		lines, err := ReadLines(write("keys.txt"+ext, b))
		if err != nil || !slices.Equal(lines, []string{"cat, pet", "dog"}) {
			t.Errorf("%q, %v", lines, err)
		}
		labels, err := ReadLabels(write("labels.txt"+ext, b))
		if err != nil || !slices.Equal(labels.Names, []string{"cat", "pet", "dog"}) {
			t.Errorf("%v, %v", labels, err)
		}
	}
	for ext, b := range packed(t, []byte("a,b\n1,0\n0,1\n")) {
		labels, err := ReadLabels(write("labels.csv"+ext, b))
		if err != nil || !labels.Numbers || !slices.Equal(labels.Names, []string{"a", "b"}) {
			t.Errorf("%v, %v", labels, err)
		}
	}
	for ext, b := range packed(t, []byte(`[{"key":"a","vectors":{"x":[1]}}, {"key":"b"}]`)) {
		r := must(OpenItems(write("items.json"+ext, b), "items"))(t)
		var keys []string
		var it table.Item
		for r.Next(&it) == nil {
			keys = append(keys, it.Key)
		}
		if !slices.Equal(keys, []string{"a", "b"}) {
			t.Errorf("%s: %q", ext, keys)
		}
		check(t, r.Close())
	}
	for ext, b := range packed(t, []byte("{\"x\":[1,2,3]}\n{\"x\":[4,5,6]}\n")) {
		v := must(Open(write("m.json"+ext, b)+":x", "m"))(t)
		if v.Rows != 2 || v.Cols != 3 {
			t.Errorf("%d x %d", v.Rows, v.Cols)
		}
		check(t, v.Close())
	}
}

// What is no compressed file, is cut off, or expands without end is refused, and no temporary file stays.
func TestPackedRejects(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	defer func(n int64) { matrix.MaxUnpacked = n }(matrix.MaxUnpacked)
	matrix.MaxUnpacked = 1 << 20
	dir := t.TempDir()
	bomb := make([]byte, 8<<20)
	for ext, b := range packed(t, bomb) {
		path := filepath.Join(dir, "x.csv"+ext)
		for _, c := range []struct {
			content []byte
			want    string
		}{
			{b, path + ": " + matrix.Thousands(len(b)) + " bytes expand to more than "},
			{b[:len(b)-3], path + ": "},
			{[]byte("1,2\n"), path + ": cannot be decompressed: "},
			{nil, path + ": cannot be decompressed: "},
		} {
			check(t, os.WriteFile(path, c.content, 0o666))
			_, err := Open(path, path)
			wantError(t, err, c.want)
		}
	}
	for ext, b := range packed(t, []byte("1,2\n3,4\n")) {
		path := filepath.Join(dir, "x.csv"+ext)
		check(t, os.WriteFile(path, b[:len(b)-2], 0o666))
		_, err := Open(path, path)
		wantError(t, err, path+": cannot be decompressed: ")
	}
	if left := must(os.ReadDir(os.Getenv("TMPDIR")))(t); len(left) > 0 {
		t.Errorf("%d files stay", len(left))
	}
}

// No bytes make the decompressors take more memory or disk than they may.
func FuzzPacked(f *testing.F) {
	for _, b := range packed(f, []byte("1,2\n3,4\n")) {
		f.Add(b)
	}
	for _, b := range packed(f, make([]byte, 1<<20)) {
		f.Add(b)
	}
	matrix.MaxUnpacked = 1 << 16
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, ext := range []string{".gz", ".zst"} {
			path := filepath.Join(dir, "x.txt"+ext)
			check(t, os.WriteFile(path, b, 0o666))
			// A zstd may claim a window of 128 MiB, as the largest levels have.
			bounded(t, len(b), 400<<20, 1000, func() {
				src, err := matrix.Open(path, "x")
				if err != nil {
					checkError(t, err)
					return
				}
				n := must(io.Copy(io.Discard, src.Reader()))(t)
				if n != src.Size || n > max(matrix.MaxUnpacked, matrix.MaxExpansion*int64(len(b))) {
					t.Errorf("%d bytes of %d from %d", n, src.Size, len(b))
				}
				check(t, src.Close())
			})
		}
	})
}
