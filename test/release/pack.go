package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"io"
	"strings"
	"time"
)

// A file is one file of an archive.
type file struct {
	name string
	mode int64
	data []byte
}

// packTar writes files in a folder as a .tar.gz. Nothing in it depends on the machine
// or the user.
func packTar(w io.Writer, folder string, at time.Time, files []file) error {
	var entries []file
	for _, f := range files {
		entries = append(entries, file{folder + "/" + f.name, f.mode, f.data})
	}
	return packEntries(w, at, entries)
}

// packEntries writes a .tar.gz. An entry whose name ends in / is a folder.
func packEntries(w io.Writer, at time.Time, entries []file) error {
	z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	t := tar.NewWriter(z)
	for _, f := range entries {
		kind := byte(tar.TypeReg)
		if strings.HasSuffix(f.name, "/") {
			kind = tar.TypeDir
		}
		err := t.WriteHeader(&tar.Header{
			Format: tar.FormatUSTAR, Typeflag: kind, Name: f.name,
			Mode: f.mode, Size: int64(len(f.data)), ModTime: at,
		})
		if err != nil {
			return err
		}
		if _, err := t.Write(f.data); err != nil {
			return err
		}
	}
	if err := t.Close(); err != nil {
		return err
	}
	return z.Close()
}

// packZip is packTar for Windows, as a .zip.
func packZip(w io.Writer, folder string, at time.Time, files []file) error {
	z := zip.NewWriter(w)
	for _, f := range files {
		out, err := z.CreateHeader(&zip.FileHeader{Name: folder + "/" + f.name, Method: zip.Deflate,
			Modified: at})
		if err != nil {
			return err
		}
		if _, err := out.Write(f.data); err != nil {
			return err
		}
	}
	return z.Close()
}
