package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"io"
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
	z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	t := tar.NewWriter(z)
	for _, f := range files {
		err := t.WriteHeader(&tar.Header{
			Format: tar.FormatUSTAR, Typeflag: tar.TypeReg, Name: folder + "/" + f.name,
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
