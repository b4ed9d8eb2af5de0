package npy

import (
	"archive/zip"
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/fddhdb/fddhdb/files/internal/matrix"
)

// A .npz file (numpy.savez, numpy.savez_compressed, scipy.sparse.save_npz) is a zip archive whose members are
// .npy files, NAME.npy each.
//
// Members are decompressed as their rows are read, and never held. The length in the directory is checked
// against the header of the member. The real length is checked against both, and the checksum is verified,
// when the last row is read.

// OpenZip opens the member that the source names, or the sparse matrix or the only member of the archive.
// flat is as for Open.
func OpenZip(src matrix.Source, flat bool) (*matrix.Vectors, error) {
	archive, err := zip.NewReader(src, src.Size)
	if err != nil {
		return nil, src.Fail("is not a .npz file, which is a zip archive: %w", err)
	}
	members := map[string]*zip.File{}
	var names []string
	for _, f := range archive.File {
		name, isNPY := strings.CutSuffix(f.Name, ".npy")
		if !isNPY {
			continue
		}
		if members[name] != nil {
			return nil, src.Fail("has two members %s", matrix.Quote(name))
		}
		members[name] = f
		names = append(names, name)
	}
	slices.Sort(names)
	switch name := src.Member; {
	case len(names) == 0:
		return nil, src.Fail("has no members that are .npy files")
	case name != "" && members[name] == nil:
		return nil, src.Fail("has no member %s: there is %s", matrix.Quote(name), matrix.Names(names))
	case name != "":
		return openDense(src, members[name], flat)
	case members["format"] != nil && members["shape"] != nil:
		return openCSR(src, members)
	case len(names) == 1:
		return openDense(src, members[names[0]], flat)
	default:
		return nil, src.Fail("has several members: say which with %s:NAME, NAME being one of %s", src.Name, matrix.Names(names))
	}
}

// openDense opens a member as a dense matrix.
func openDense(src matrix.Source, f *zip.File, flat bool) (*matrix.Vectors, error) {
	m, err := openMember(src, f)
	if err != nil {
		return nil, err
	}
	h, err := readHeader(m)
	if err == nil && h.fortran && h.cols > 1 && h.rows > 1 {
		err = m.Fail("is in Fortran order, in which a .npz is not read: save it in C order (numpy.ascontiguousarray), or as a .npy")
	}
	var v *matrix.Vectors
	if err == nil {
		v, err = h.vectors(m, flat)
	}
	if err != nil {
		m.Close()
		return nil, err
	}
	v.Skip, v.Closer = nil, matrix.Closers{m.Closer, src.Closer} // a member is read from start to end
	return v, nil
}

// openMember opens a member of the archive, which is read from start to end. Closing it does not close src.
func openMember(src matrix.Source, f *zip.File) (matrix.Source, error) {
	name := src.Name
	if src.Member == "" {
		name += ":" + strings.TrimSuffix(f.Name, ".npy")
	}
	if most := matrix.MaxInflation * (min(f.CompressedSize64, uint64(src.Size)) + 1); f.UncompressedSize64 > most {
		return matrix.Source{}, matrix.FileError(name, fmt.Errorf("claims %d bytes, its %d can hold %d at most: it is damaged", f.UncompressedSize64, f.CompressedSize64, most))
	}
	r, err := f.Open()
	if err != nil {
		return matrix.Source{}, matrix.FileError(name, err)
	}
	size := int64(f.UncompressedSize64)
	return matrix.Source{Name: name, ReaderAt: &forward{r: bufio.NewReader(r), size: size}, Size: size, Closer: r}, nil
}

// A forward is an io.ReaderAt that is read from start to end. Only the bytes in head may be read again: the
// start of a .npy header.
type forward struct {
	r    *bufio.Reader
	size int64
	at   int64    // position of the next byte
	head [12]byte // the first bytes
}

var errBackward = errors.New("internal error: a member of a .npz is read backward")

func (f *forward) ReadAt(b []byte, at int64) (n int, err error) {
	if at < f.at && f.at <= int64(len(f.head)) {
		n = copy(b, f.head[at:f.at])
		at += int64(n)
	}
	if n == len(b) {
		return n, nil
	}
	if at != f.at {
		return n, errBackward
	}
	m, err := io.ReadFull(f.r, b[n:])
	if at < int64(len(f.head)) {
		copy(f.head[at:], b[n:n+m])
	}
	f.at += int64(m)
	n += m
	if err != nil {
		return n, err
	}
	if f.at == f.size {
		// The archive verifies its checksum after the last byte.
		if _, err := f.r.ReadByte(); err != io.EOF {
			if err == nil {
				err = errors.New("holds more than the archive says: it is damaged")
			}
			return n - 1, err
		}
	}
	return n, nil
}
