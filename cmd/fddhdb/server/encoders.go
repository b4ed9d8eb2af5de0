package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/encoder"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/serve"
)

// Encoders are the encoders of databases, by the names that these have in URLs. It is a serve.Encoder.
type Encoders map[string]*encoder.Pool

// Modalities implements serve.Encoder.
func (all Encoders) Modalities(database, collection string, input db.EncoderInput) []string {
	if p := all[database]; p != nil {
		return p.Modalities(context.Background(), collection, input)
	}
	return nil
}

// Encode implements serve.Encoder. The program reads a file under a temporary name, whose extension is that
// of the type of a picture.
func (all Encoders) Encode(ctx context.Context, of serve.Encoding, content []byte) ([]float32, *db.Sparse,
	error) {
	p := all[of.Database]
	if p == nil {
		return nil, nil, fault.Invalid("there is no encoder for %q", of.Modality)
	}
	input := string(content)
	if of.Input == db.InputFile {
		name, remove, err := temporary(content)
		if err != nil {
			return nil, nil, err
		}
		defer remove()
		input = name
	}
	x, err := p.Encode(ctx, of.Collection, of.Modality, of.Input, of.Dim, input)
	var failed *encoder.Error
	switch {
	case errors.As(err, &failed) && failed.Reason == encoder.Refused:
		err = fault.Invalid("%w", err)
	case failed != nil:
		err = fmt.Errorf("%w: %w", serve.ErrEncoder, err)
	case errors.Is(err, encoder.ErrBusy):
		err = fmt.Errorf("%w: %w", serve.ErrOverloaded, err)
	case errors.Is(err, encoder.ErrNone):
		err = fault.Invalid("%w", err)
	}
	return x.Dense, x.Sparse, err
}

// Close ends the programs.
func (all Encoders) Close() {
	for _, p := range all {
		p.Close()
	}
}

// temporary writes a picture to a file of its own.
func temporary(content []byte) (name string, remove func(), err error) {
	kind := serve.PictureType(content[:min(len(content), 512)])
	if kind == "" {
		return "", nil, fault.Invalid("the file is no picture, by its first bytes: PNG, JPEG, GIF, WebP and SVG are possible")
	}
	temp, err := filepath.Abs(os.TempDir()) // programs run in another folder
	if err != nil {
		return "", nil, err
	}
	_, ext, _ := strings.Cut(strings.TrimSuffix(kind, "+xml"), "/")
	f, err := os.CreateTemp(temp, "fddhdb-*."+ext)
	if err != nil {
		return "", nil, err
	}
	remove = func() { _ = os.Remove(f.Name()) }
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err != nil {
		remove()
		return "", nil, err
	}
	return f.Name(), remove, nil
}
