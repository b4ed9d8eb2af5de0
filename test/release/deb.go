package main

import (
	"bytes"
	"compress/gzip"
	"crypto/md5" // the form of Debian packages asks for it
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"
)

const (
	homepage   = "https://github.com/fddhdb/fddhdb"
	maintainer = "fddhdb maintainers <fddhdb@users.noreply.github.com>"
	summary    = "embedded database for retrieval by vectors and learned hash codes"
)

// copyright is the file of that name of a Debian package, in its machine-readable form.
const copyright = `Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: fddhdb
Source: ` + homepage + `

Files: *
Copyright: the authors of fddhdb
License: Apache-2.0
 On Debian systems the full text of the Apache License 2.0 is in
 /usr/share/common-licenses/Apache-2.0.
Comment:
 The program is linked with Go modules that have licences of their own. The
 file .spdx.json of the release lists them with their versions.
`

// debVersion returns a version in the form of Debian, in which one before a release
// sorts before it.
func debVersion(version string) string {
	return strings.ReplaceAll(strings.TrimPrefix(version, "v"), "-", "~") + "-1"
}

// debName returns the file name of the Debian package for an architecture of Go, which
// Debian calls the same on amd64 and arm64.
func debName(version, arch string) string {
	return fmt.Sprintf("fddhdb_%s_%s.deb", debVersion(version), arch)
}

// debFiles returns the files of a Debian package at their places: the shell, and of the
// files beside it those that Debian has a place for.
func debFiles(version string, at time.Time, executable []byte, beside []file) ([]file, error) {
	const doc = "usr/share/doc/fddhdb/"
	entry := fmt.Sprintf("fddhdb (%s) unstable; urgency=medium\n\n  * Release %s, see changelog.gz.\n\n -- %s  %s\n",
		debVersion(version), strings.TrimPrefix(version, "v"), maintainer, at.Format(time.RFC1123Z))
	places := map[string]string{
		"fddhdb.1":               "usr/share/man/man1/fddhdb.1.gz",
		"CHANGELOG.md":           doc + "changelog.gz",
		"completion/fddhdb.bash": "usr/share/bash-completion/completions/fddhdb",
		"completion/_fddhdb":     "usr/share/zsh/vendor-completions/_fddhdb",
		"completion/fddhdb.fish": "usr/share/fish/vendor_completions.d/fddhdb.fish",
	}
	files := []file{
		{"usr/bin/fddhdb", 0o755, executable},
		{doc + "copyright", 0o644, []byte(copyright)},
		{doc + "changelog.Debian.gz", 0o644, []byte(entry)},
	}
	for _, f := range beside {
		if place, ok := places[f.name]; ok {
			files = append(files, file{place, 0o644, f.data})
			delete(places, f.name)
		}
	}
	if len(places) > 0 {
		return nil, fmt.Errorf("files are missing for the Debian package: %v", places)
	}
	for i, f := range files {
		if strings.HasSuffix(f.name, ".gz") {
			var b bytes.Buffer
			if err := compress(&b, f.data); err != nil {
				return nil, err
			}
			files[i].data = b.Bytes()
		}
	}
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return files, nil
}

// packDeb writes a Debian package: an ar archive of its version, its control files and
// its files. Like packTar it depends on nothing of the machine.
func packDeb(w io.Writer, version, arch string, at time.Time, files []file) error {
	var data, control bytes.Buffer
	if err := packDebTar(&data, at, files); err != nil {
		return err
	}
	size := 0
	var sums strings.Builder
	for _, f := range files {
		size += len(f.data)
		fmt.Fprintf(&sums, "%x  %s\n", md5.Sum(f.data), f.name)
	}
	description := fmt.Sprintf(`Package: fddhdb
Version: %s
Architecture: %s
Maintainer: %s
Installed-Size: %d
Suggests: less
Section: database
Priority: optional
Homepage: %s
Description: %s
 fddhdb keeps items that have feature vectors of several kinds, learns from
 the labelled ones short binary codes that make the kinds comparable, and
 finds the items that are nearest to a vector of any kind. A database is a
 folder. This is its command line and its shell.
`, debVersion(version), arch, maintainer, (size+1023)/1024, homepage, summary)
	err := packDebTar(&control, at, []file{{"control", 0o644, []byte(description)},
		{"md5sums", 0o644, []byte(sums.String())}})
	if err != nil {
		return err
	}
	if _, err := io.WriteString(w, "!<arch>\n"); err != nil {
		return err
	}
	for _, member := range []file{
		{"debian-binary", 0o644, []byte("2.0\n")}, {"control.tar.gz", 0o644, control.Bytes()},
		{"data.tar.gz", 0o644, data.Bytes()},
	} {
		if err := writeAr(w, member, at); err != nil {
			return err
		}
	}
	return nil
}

// writeAr writes a member of an ar archive.
func writeAr(w io.Writer, f file, at time.Time) error {
	_, err := fmt.Fprintf(w, "%-16s%-12d%-6d%-6d%-8o%-10d`\n", f.name, at.Unix(), 0, 0, 0o100000|f.mode,
		len(f.data))
	if err == nil {
		_, err = w.Write(f.data)
	}
	if err == nil && len(f.data)%2 == 1 {
		_, err = io.WriteString(w, "\n")
	}
	return err
}

// packDebTar is packTar as Debian wants it: paths begin with ./, and every folder is an
// entry.
func packDebTar(w io.Writer, at time.Time, files []file) error {
	var entries []file
	var folders []string
	for _, f := range files {
		for dir := path.Dir(f.name); dir != "."; dir = path.Dir(dir) {
			folders = append(folders, dir)
		}
	}
	slices.Sort(folders)
	entries = append(entries, file{"./", 0o755, nil})
	for _, dir := range slices.Compact(folders) {
		entries = append(entries, file{"./" + dir + "/", 0o755, nil})
	}
	for _, f := range files {
		entries = append(entries, file{"./" + f.name, f.mode, f.data})
	}
	return packEntries(w, at, entries)
}

// compress writes data as a .gz without a name or a time.
func compress(w io.Writer, data []byte) error {
	z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := z.Write(data); err != nil {
		return err
	}
	return z.Close()
}
