package explore

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path"
	"strings"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/encoder"
	"github.com/fddhdb/fddhdb/db"
)

// pictureForm describes a picture that was sent.
type pictureForm struct {
	Picture string `json:"picture"` // id for searches
	Name    string `json:"name"`
	Media   string `json:"media"` // path at which it is served
}

// asPicture tells by the first bytes of the body what kind of picture it is, and refuses what is
// none. It returns all of the body, bounded, and the extension of its type.
func (u *upload) asPicture(body io.Reader) (whole io.Reader, ext string, err error) {
	head := make([]byte, 512) // so many http.DetectContentType looks at
	n, err := io.ReadFull(body, head)
	if err != nil && err != io.EOF && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, "", bodyError(err)
	}
	if u.picture = pictureType(head[:n]); u.picture == "" {
		_, _ = io.Copy(io.Discard, body) // a browser that cannot send all of it may show no answer
		return nil, "", badRequest("%.100q is neither a file of vectors, by its name (%s), nor a picture, by its first bytes (PNG, JPEG, GIF, WebP, SVG)",
			u.base(), strings.Join(extensions, ", "))
	}
	whole = io.MultiReader(bytes.NewReader(head[:n]), body)
	return http.MaxBytesReader(nil, io.NopCloser(whole), maxPicture), "." + strings.TrimSuffix(path.Base(u.picture), "+xml"), nil
}

// picture returns a picture that was sent. The caller gives it back with done.
func (l *uploads) picture(id string) (*upload, error) {
	u, err := l.use(id)
	if err == nil && u.picture == "" {
		l.done(u)
		return nil, badRequest("%s is a file of vectors: give it as upload, not as picture", u.base())
	}
	return u, err
}

// pictureVector makes the vector of the picture of a query, of dim dimensions, by the encoder that the
// collection has for files.
func (s *Server) pictureVector(ctx context.Context, q *query, dim int) (encoder.Vector, error) {
	e := s.encodings[encoderOf{q.collection, q.from, db.InputFile}]
	if e == nil {
		return encoder.Vector{}, badRequest("there is no encoder of pictures for %q: store one by fddhdb encoder DIR --input file --set %s=COMMAND", q.from, q.from)
	}
	u, err := s.uploads.picture(q.picture)
	if err != nil {
		return encoder.Vector{}, err
	}
	defer s.uploads.done(u)
	q.file = u.base()
	x, err := e.vector(ctx, dim, u.path)
	var with *statusError
	if errors.As(err, &with) { // what the program says of the file names its path
		err = statusErrorf(with.status, "%s", strings.ReplaceAll(err.Error(), u.path, q.file))
	}
	return x, err
}

// pictureBytes returns the picture that the parameters name.
func (l *uploads) pictureBytes(p *parameters) ([]byte, error) {
	id := p.text("picture", "")
	if err := p.end(); err != nil {
		return nil, err
	}
	u, err := l.picture(id)
	if err != nil {
		return nil, err
	}
	defer l.done(u)
	return os.ReadFile(u.path)
}
