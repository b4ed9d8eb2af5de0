package files

import (
	"archive/zip"
	"io"
	"time"
)

// An NPZWriter writes a matrix as the only member of a .npz, like numpy.savez. It
// writes row by row and uncompressed, as vectors hardly shrink. It is not safe for
// concurrent use.
type NPZWriter[T float32 | uint8] struct {
	*Writer[T]
	archive *zip.Writer
}

// NewNPZWriter starts a matrix of rows x cols, within the limits of NewWriter. name is
// its name in the archive.
func NewNPZWriter[T float32 | uint8](w io.Writer, name string, rows, cols int) (*NPZWriter[T], error) {
	archive := zip.NewWriter(w)
	f, err := createMember(archive, name, zip.Store)
	if err != nil {
		return nil, err
	}
	m, err := NewWriter[T](f, rows, cols)
	if err != nil {
		return nil, err
	}
	return &NPZWriter[T]{m, archive}, nil
}

// Close ends the archive. All rows must have been written. It does not close the
// underlying writer.
func (w *NPZWriter[T]) Close() error {
	if err := w.Writer.Close(); err != nil {
		return err
	}
	return w.archive.Close()
}

// createMember starts a member of a .npz. Its time is constant, so that the same matrix
// makes the same file.
func createMember(archive *zip.Writer, name string, method uint16) (io.Writer, error) {
	return archive.CreateHeader(&zip.FileHeader{
		Name: name + ".npy", Method: method, Modified: time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC),
	})
}
