package main

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/csv"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/python"
)

func wheelOf(t *testing.T, version string, p platform, executable []byte) []byte {
	t.Helper()
	files, err := wheelFiles(version, p, []byte(python.Source()), []byte("license"), executable)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := packWheel(&b, time.Date(2026, 3, 4, 5, 6, 8, 0, time.UTC), files); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A wheel has the same bytes wherever it is made, and its record names every file with its sum.
func TestWheel(t *testing.T) {
	for _, p := range platforms {
		b := wheelOf(t, "v1.2.3-rc.1", p, []byte("program"))
		if !bytes.Equal(b, wheelOf(t, "v1.2.3-rc.1", p, []byte("program"))) {
			t.Errorf("%v: two wheels of the same files differ", p)
		}
		z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			t.Fatal(err)
		}
		contents := map[string][]byte{}
		for _, f := range z.File {
			r, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			if contents[f.Name], err = io.ReadAll(r); err != nil {
				t.Error(err)
			}
			script := strings.HasPrefix(f.Name, "fddhdb-1.2.3rc1.data/scripts/fddhdb")
			if want := os.FileMode(0o644); f.Mode() != want && !(script && f.Mode() == 0o755) {
				t.Errorf("%s has mode %v", f.Name, f.Mode())
			}
		}
		record := contents["fddhdb-1.2.3rc1.dist-info/RECORD"]
		lines, err := csv.NewReader(bytes.NewReader(record)).ReadAll()
		if err != nil || len(lines) != len(contents) {
			t.Fatalf("%v: %v in %s", p, err, record)
		}
		for _, line := range lines {
			data, has := contents[line[0]]
			sum := sha256.Sum256(data)
			want := []string{line[0], "sha256=" + base64.RawURLEncoding.EncodeToString(sum[:]),
				strconv.Itoa(len(data))}
			if strings.HasSuffix(line[0], "/RECORD") {
				want = []string{line[0], "", ""}
			}
			if !has || !slices.Equal(line, want) {
				t.Errorf("%v: %q, not %q", p, line, want)
			}
		}
		for _, tag := range wheelTags[p] {
			if !bytes.Contains(contents["fddhdb-1.2.3rc1.dist-info/WHEEL"], []byte("Tag: py3-none-"+tag+"\n")) ||
				!strings.Contains(wheelName("v1.2.3-rc.1", p), tag) {
				t.Errorf("%v: tag %s is missing", p, tag)
			}
		}
	}
	if got := wheelName("v1.2.3-rc.1", platform{"darwin", "arm64"}); got !=
		"fddhdb-1.2.3rc1-py3-none-macosx_12_0_arm64.whl" {
		t.Error(got)
	}
}

// pip installs a wheel without an index, and Python then opens a database by the program in it.
func TestWheelInstalls(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the command")
	}
	interpreter := ""
	for _, path := range []string{"/usr/bin/python3", "python3"} {
		if interpreter == "" && exec.Command(path, "-m", "pip", "--version").Run() == nil {
			interpreter = path
		}
	}
	if interpreter == "" {
		t.Skip("there is no python3 with pip")
	}
	dir, p := t.TempDir(), platform{runtime.GOOS, runtime.GOARCH}
	run := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "PYTHONPATH="+filepath.Join(dir, "there"),
			"FDDHDB_BINARY=")
		said, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %q: %v\n%s", name, args, err, said)
		}
		return string(said)
	}
	program := filepath.Join(dir, p.executable())
	run("go", "-C", "../..", "build", "-o", program, "./cmd/fddhdb")
	executable, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	const version = "v0.0.0-20261130120000-4a0daf5e1234"
	wheel := filepath.Join(dir, wheelName(version, p))
	if err := os.WriteFile(wheel, wheelOf(t, version, p, executable), 0o644); err != nil {
		t.Fatal(err)
	}
	run(interpreter, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target",
		filepath.Join(dir, "there"), wheel)
	got := run(interpreter, "-c", `
import fddhdb, sys
with fddhdb.open(sys.argv[1]) as db:
    c = db.create("main", {"image": 2})
    c.put("a", [1, 2])
    print(c.search([1, 1]).keys, fddhdb._binary() == sys.argv[2])
`, filepath.Join(dir, "a.db"), filepath.Join(dir, "there", "bin", p.executable()))
	if got != "['a'] True\n" {
		t.Errorf("%q", got)
	}
}
