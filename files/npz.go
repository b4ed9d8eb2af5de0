package files

import (
	"archive/zip"
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// A .npz file (numpy.savez, numpy.savez_compressed, scipy.sparse.save_npz) is a zip
// archive whose members are .npy files, NAME.npy each.
//
// Members are decompressed as their rows are read, and never held. The length in the
// directory is checked against the header of the member. The real length is checked
// against both, and the checksum is verified, when the last row is read.

// maxInflation bounds the expansion of deflate: 258 bytes of a match take two bits.
const maxInflation = 1032

// maxMembers bounds the members that an error lists.
const maxMembers = 20

// openNPZ opens the member that the source names, or the sparse matrix or the only
// member of the archive.
func openNPZ(src source) (Reader, error) {
	archive, err := zip.NewReader(src, src.size)
	if err != nil {
		return nil, src.fail("is not a .npz file, which is a zip archive: %w", err)
	}
	members := map[string]*zip.File{}
	var names []string
	for _, f := range archive.File {
		name, isNPY := strings.CutSuffix(f.Name, ".npy")
		if !isNPY {
			continue
		}
		if members[name] != nil {
			return nil, src.fail("has two members %s", quote([]byte(name)))
		}
		members[name] = f
		names = append(names, name)
	}
	slices.Sort(names)
	list := func() string {
		if len(names) > maxMembers {
			return strings.Join(names[:maxMembers], ", ") + ", ..."
		}
		return strings.Join(names, ", ")
	}
	switch name := src.member; {
	case len(names) == 0:
		return nil, src.fail("has no members that are .npy files")
	case name != "" && members[name] == nil:
		return nil, src.fail("has no member %s: there is %s", quote([]byte(name)), list())
	case name != "":
		return openNPZMember(src, members[name])
	case members["format"] != nil && members["shape"] != nil:
		return openCSR(src, members)
	case len(names) == 1:
		return openNPZMember(src, members[names[0]])
	default:
		return nil, src.fail("has several members: say which with %s:NAME, NAME being one of %s", src.name, list())
	}
}

// openNPZMember opens a member as a dense matrix.
func openNPZMember(src source, f *zip.File) (Reader, error) {
	m, err := openMember(src, f)
	if err != nil {
		return nil, err
	}
	r, err := newNPYMatrix(m)
	if err == nil && r.fortran && r.cols > 1 && r.rows > 1 {
		err = m.fail("is in Fortran order, in which a .npz is not read: save it in C order (numpy.ascontiguousarray), or as a .npy")
	}
	if err != nil {
		m.Close()
		return nil, err
	}
	r.src.Closer = closers{m, src.Closer}
	return &npyReader{m: r}, nil
}

// closers are closed together. Some may be nil.
type closers [2]io.Closer

func (c closers) Close() error {
	var errs []error
	for _, x := range c {
		if x != nil {
			errs = append(errs, x.Close())
		}
	}
	return errors.Join(errs...)
}

// openMember opens a member of the archive, which is read from start to end. Closing it
// does not close src.
func openMember(src source, f *zip.File) (source, error) {
	name := src.name
	if src.member == "" {
		name += ":" + strings.TrimSuffix(f.Name, ".npy")
	}
	fail := func(err error) (source, error) { return source{}, fileError(name, err) }
	// deflate cannot expand by more than that.
	if most := maxInflation * (min(f.CompressedSize64, uint64(src.size)) + 1); f.UncompressedSize64 > most {
		return fail(fmt.Errorf("claims %d bytes, its %d can hold %d at most: it is damaged", f.UncompressedSize64, f.CompressedSize64, most))
	}
	r, err := f.Open()
	if err != nil {
		return fail(err)
	}
	size := int64(f.UncompressedSize64)
	return source{name: name, ReaderAt: &forward{r: bufio.NewReader(r), size: size}, size: size, Closer: r}, nil
}

// A forward is an io.ReaderAt that is read from start to end. Only the bytes in head
// may be read again: the start of a .npy header.
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
