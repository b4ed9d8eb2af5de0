package main

import (
	"bytes"
	"compress/gzip"
	"crypto/md5"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

var debTime = time.Date(2026, 3, 4, 5, 6, 8, 0, time.UTC)

// besidesForTests are the files beside a shell, without their content.
func besidesForTests() (files []file) {
	for _, name := range []string{"CHANGELOG.md", "LICENSE", "completion/_fddhdb", "completion/fddhdb.bash",
		"completion/fddhdb.fish", "fddhdb.1"} {
		files = append(files, file{name, 0o644, []byte("this is " + name + "\n")})
	}
	return files
}

func debOf(t *testing.T, version, arch string, executable []byte) []byte {
	t.Helper()
	files, err := debFiles(version, debTime, executable, besidesForTests())
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := packDeb(&b, version, arch, debTime, files); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// unar returns the members of an ar archive.
func unar(t *testing.T, b []byte) map[string][]byte {
	t.Helper()
	b, ok := bytes.CutPrefix(b, []byte("!<arch>\n"))
	if !ok {
		t.Fatal("this is no ar archive")
	}
	members := map[string][]byte{}
	for len(b) > 0 {
		var size int
		if _, err := fmt.Sscan(string(b[48:58]), &size); err != nil || string(b[58:60]) != "`\n" {
			t.Fatalf("%q: %v", b[:60], err)
		}
		members[strings.TrimSpace(string(b[:16]))] = b[60 : 60+size]
		b = b[60+size+size%2:]
	}
	return members
}

// A Debian package has what Debian wants at its places, and the same bytes each time.
func TestDeb(t *testing.T) {
	deb := debOf(t, "v1.2.3", "amd64", []byte("program"))
	if !bytes.Equal(deb, debOf(t, "v1.2.3", "amd64", []byte("program"))) {
		t.Error("two packages of the same files differ")
	}
	members := unar(t, deb)
	if got := slices.Sorted(maps.Keys(members)); !slices.Equal(got,
		[]string{"control.tar.gz", "data.tar.gz", "debian-binary"}) {
		t.Fatalf("%q", got)
	}
	data := untar(t, members["data.tar.gz"], debTime)
	for name, want := range map[string]string{
		"./usr/bin/fddhdb": "program",
		"./usr/share/bash-completion/completions/fddhdb":    "this is completion/fddhdb.bash\n",
		"./usr/share/zsh/vendor-completions/_fddhdb":        "this is completion/_fddhdb\n",
		"./usr/share/fish/vendor_completions.d/fddhdb.fish": "this is completion/fddhdb.fish\n",
		"./usr/share/man/man1/fddhdb.1.gz":                  "this is fddhdb.1\n",
		"./usr/share/doc/fddhdb/changelog.gz":               "this is CHANGELOG.md\n",
		"./usr/share/doc/fddhdb/changelog.Debian.gz":        "fddhdb (1.2.3-1) unstable",
		"./usr/share/doc/fddhdb/copyright":                  "License: Apache-2.0",
	} {
		text, there := data[name]
		if strings.HasSuffix(name, ".gz") {
			text = gunzip(t, text)
		}
		if !there || !strings.Contains(text, want) {
			t.Errorf("%s: %q", name, text)
		}
	}
	control := untar(t, members["control.tar.gz"], debTime)
	for _, want := range []string{"Package: fddhdb\n", "Version: 1.2.3-1\n", "Architecture: amd64\n",
		"Installed-Size: "} {
		if !strings.Contains(control["./control"], want) {
			t.Errorf("control lacks %q: %s", want, control["./control"])
		}
	}
	files := 0
	for name, text := range data {
		if strings.HasSuffix(name, "/") {
			continue
		}
		files++
		if line := fmt.Sprintf("%x  %s\n", md5.Sum([]byte(text)),
			strings.TrimPrefix(name, "./")); !strings.Contains(control["./md5sums"], line) {
			t.Errorf("md5sums lacks %s", name)
		}
	}
	if n := strings.Count(control["./md5sums"], "\n"); n != files {
		t.Errorf("%d sums of %d files", n, files)
	}
	if _, err := debFiles("v1.2.3", debTime, nil, besidesForTests()[1:]); err == nil {
		t.Error("a package without its changelog")
	}
}

// Versions before a release sort before it, and none has a character that Debian refuses.
func TestDebVersion(t *testing.T) {
	for version, want := range map[string]string{
		"v1.2.3": "1.2.3-1", "v1.2.3-rc.1": "1.2.3~rc.1-1",
		"v0.0.0-20260304050608-abcdef012345+dirty": "0.0.0~20260304050608~abcdef012345+dirty-1",
	} {
		if got := debVersion(version); got != want ||
			!regexp.MustCompile(`^[0-9][A-Za-z0-9.+~]*-1$`).MatchString(got) {
			t.Errorf("%s: %s, want %s", version, got, want)
		}
	}
	if dpkg, err := exec.LookPath("dpkg"); err == nil {
		if err := exec.CommandContext(t.Context(), dpkg, "--compare-versions", debVersion("v1.2.3-rc.1"),
			"lt", debVersion("v1.2.3")).Run(); err != nil {
			t.Error("to dpkg 1.2.3-rc.1 is not before 1.2.3")
		}
	}
}

// dpkg reads, installs and removes a package.
func TestDpkg(t *testing.T) {
	dpkg, err := exec.LookPath("dpkg")
	if err != nil {
		t.Skip("there is no dpkg")
	}
	run := func(name string, args ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s %q: %v\n%s", name, args, err, out)
		}
		return string(out)
	}
	arch := strings.TrimSpace(run(dpkg, "--print-architecture"))
	path := filepath.Join(t.TempDir(), debName("v1.2.3", arch))
	if err := os.WriteFile(path, debOf(t, "v1.2.3", arch, []byte("#!/bin/sh\necho installed\n")),
		0o644); err != nil {
		t.Fatal(err)
	}
	if out := run("dpkg-deb", "--info", path); !strings.Contains(out, "Homepage: "+homepage) {
		t.Errorf("--info: %s", out)
	}
	if out := run("dpkg-deb", "--contents", path); !strings.Contains(out,
		"-rwxr-xr-x root/root        25 2026-03-04") && !strings.Contains(out, "-rwxr-xr-x 0/0 ") {
		t.Errorf("--contents: %s", out)
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can install packages")
	}
	root := t.TempDir()
	for _, dir := range []string{"info", "updates"} {
		if err := os.MkdirAll(filepath.Join(root, "var/lib/dpkg", dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "var/lib/dpkg/status"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	run(dpkg, "--root="+root, "--log="+filepath.Join(root, "log"), "--install", path)
	program := filepath.Join(root, "usr/bin/fddhdb")
	if out := run(program); out != "installed\n" {
		t.Errorf("%q", out)
	}
	if out := run(dpkg, "--root="+root, "--verify", "fddhdb"); out != "" {
		t.Errorf("--verify: %s", out)
	}
	run(dpkg, "--root="+root, "--log="+filepath.Join(root, "log"), "--purge", "fddhdb")
	if _, err := os.Stat(program); err == nil {
		t.Error("it is still there after --purge")
	}
}

func gunzip(t *testing.T, text string) string {
	t.Helper()
	z, err := gzip.NewReader(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil || !z.ModTime.IsZero() || z.Name != "" {
		t.Errorf("%+v: %v", z.Header, err)
	}
	return string(b)
}
