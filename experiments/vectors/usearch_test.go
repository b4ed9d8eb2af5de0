package vectors

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/experiments/common"
)

// headers returns a folder with empty files that compile looks for.
func headers(t *testing.T, names ...string) string {
	dir := t.TempDir()
	for _, name := range names {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// compiler sets $CXX to a script, whose first argument is to be left alone.
func compiler(t *testing.T, script string) {
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell")
	}
	path := filepath.Join(t.TempDir(), "cxx")
	if err := os.WriteFile(path, []byte("shift\n"+script), 0o666); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CXX", "/bin/sh "+path+" first")
}

// What stands for USearch here is this program, which speaks as usearch/main.cpp does.
func TestCompiled(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("STAND_IN", self)
	compiler(t, `
while [ "$1" != -o ]; do shift; done
grep -q usearch/index_dense.hpp "$3" || exit 1
printf '#!/bin/sh\nexec "$STAND_IN" vectors serve chromem "$@"\n' > "$2"
chmod +x "$2"
`)
	var out strings.Builder
	args := []string{"--items", "100", "--dims", "8", "--queries", "5", "--rounds", "1", "--peers", "",
		"--usearch", headers(t, "include/usearch/index_dense.hpp")}
	if err := common.Execute(t.Context(), Command(), args, &out, &out); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	for _, name := range []string{"USearch f32", "USearch i8"} {
		if r := rows(t, out.String(), name); len(r) != 12 || r[0][1] != "ef 10" || r[11][2] != "1.0000" {
			t.Errorf("%q", r)
		}
	}
	if r := rows(t, out.String(), "1"); len(r[0]) != 5 || r[0][3] == "-" || r[0][4] == "-" {
		t.Errorf("%q", r)
	}
}

func TestCompile(t *testing.T) {
	if _, err := compile(t.Context(), t.TempDir(), t.TempDir()); err == nil ||
		!strings.Contains(err.Error(), "index_dense.hpp") {
		t.Errorf("no headers: %v", err)
	}
	const dense = "usearch/index_dense.hpp"
	compiler(t, `echo "$@" >&2; exit 1`)
	for _, numkong := range []bool{false, true} {
		dir := headers(t, "include/"+dense)
		if numkong {
			dir = headers(t, dense, "numkong/include/numkong/spatial.h")
		}
		_, err := compile(t.Context(), t.TempDir(), dir)
		if err == nil || !strings.Contains(err.Error(), "-I "+dir) ||
			strings.Contains(err.Error(), "-DWITH_NUMKONG=1") != numkong {
			t.Errorf("%v; NumKong: %v", err, numkong)
		}
	}
	t.Setenv("CXX", "")
	t.Setenv("PATH", t.TempDir())
	if _, err := compile(t.Context(), t.TempDir(), headers(t, dense)); err == nil ||
		!strings.Contains(err.Error(), "no C++ compiler") {
		t.Errorf("no compiler: %v", err)
	}
}

// The real USearch finds nearly everything among few items.
func TestUSearch(t *testing.T) {
	if *source == "" {
		t.Skip("go test ./vectors -args -usearch DIR runs it on the source of USearch")
	}
	var out strings.Builder
	if err := common.Execute(t.Context(), Command(), []string{"--items", "300", "--dims", "24", "--queries",
		"12", "--rounds", "1", "--peers", "", "--usearch", *source}, &out, &out); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	for _, kind := range []string{"USearch f32", "USearch i8"} {
		found := false
		for line := range strings.Lines(out.String()) {
			if strings.HasPrefix(line, "| "+kind+", ") && strings.Contains(line, "| ef 1024 |") {
				cells := strings.Split(line, " | ")
				found = cells[2] > "0.9"
			}
		}
		if !found {
			t.Errorf("%s:\n%s", kind, out.String())
		}
	}
}
