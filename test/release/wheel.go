package main

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/python"
)

// wheelTags are the names that Python has for platforms. The program is static: any distribution of Linux
// will do. Go needs macOS 12.
var wheelTags = map[platform][]string{
	{"darwin", "amd64"}:  {"macosx_12_0_x86_64"},
	{"darwin", "arm64"}:  {"macosx_12_0_arm64"},
	{"linux", "amd64"}:   {"manylinux2014_x86_64", "manylinux_2_17_x86_64", "musllinux_1_1_x86_64"},
	{"linux", "arm64"}:   {"manylinux2014_aarch64", "manylinux_2_17_aarch64", "musllinux_1_1_aarch64"},
	{"windows", "amd64"}: {"win_amd64"},
	{"windows", "arm64"}: {"win_arm64"},
}

// wheelName returns the file name of the wheel for a platform.
func wheelName(version string, p platform) string {
	return fmt.Sprintf("fddhdb-%s-py3-none-%s.whl", python.Version(version), strings.Join(wheelTags[p], "."))
}

// wheelFiles returns the files of a wheel: the client as a package, which tells its types to those who check
// them, the program as a script, and what describes them.
func wheelFiles(version string, p platform, client, license, executable []byte) ([]file, error) {
	tags := wheelTags[p]
	if len(tags) == 0 {
		return nil, fmt.Errorf("no tag of Python is known for %s/%s", p.os, p.arch)
	}
	v := python.Version(version)
	stem := "fddhdb-" + v
	var wheel strings.Builder
	wheel.WriteString("Wheel-Version: 1.0\nGenerator: fddhdb\nRoot-Is-Purelib: false\n")
	for _, tag := range tags {
		fmt.Fprintf(&wheel, "Tag: py3-none-%s\n", tag)
	}
	const homepage = "https://github.com/fddhdb/fddhdb"
	about := fmt.Sprintf("Metadata-Version: 2.1\nName: fddhdb\nVersion: %s\nSummary: %s\nHome-page: %s\n"+
		"License: Apache-2.0\nRequires-Python: >=3.9\n\nThe client for Python, with the program for %s/%s. "+
		"Arrays need numpy. %s/blob/main/docs/PYTHON.md explains it.\n",
		v, "embedded database for retrieval by vectors and learned hash codes", homepage, p.os, p.arch, homepage)
	files := []file{
		{"fddhdb/__init__.py", 0o644, client},
		{"fddhdb/py.typed", 0o644, nil},
		{stem + ".data/scripts/" + p.executable(), 0o755, executable},
		{stem + ".dist-info/LICENSE", 0o644, license},
		{stem + ".dist-info/METADATA", 0o644, []byte(about)},
		{stem + ".dist-info/WHEEL", 0o644, []byte(wheel.String())},
	}
	name := stem + ".dist-info/RECORD"
	var record strings.Builder
	for _, f := range files {
		sum := sha256.Sum256(f.data)
		fmt.Fprintf(&record, "%s,sha256=%s,%d\n", f.name, base64.RawURLEncoding.EncodeToString(sum[:]),
			len(f.data))
	}
	fmt.Fprintf(&record, "%s,,\n", name)
	return append(files, file{name, 0o644, []byte(record.String())}), nil
}

// packWheel writes a wheel. Nothing in it depends on the machine or the user.
func packWheel(w io.Writer, at time.Time, files []file) error {
	z := zip.NewWriter(w)
	for _, f := range files {
		header := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: at}
		header.SetMode(fs.FileMode(f.mode))
		out, err := z.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := out.Write(f.data); err != nil {
			return err
		}
	}
	return z.Close()
}
