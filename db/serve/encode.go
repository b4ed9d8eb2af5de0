package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fddhdb/fddhdb/codec/perceptual"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/internal/rest"
)

// An Encoder makes vectors of texts and files, such as a model of words and pictures. It is safe for
// concurrent use.
type Encoder interface {
	// Modalities returns the modalities of a collection for which it makes vectors of such inputs.
	Modalities(database, collection string, input db.EncoderInput) []string

	// Encode returns the vector of a text, or of the contents of a file: dense or sparse. It may take
	// minutes. ErrInvalid refuses the input, ErrEncoder says that the encoder has failed, ErrOverloaded that
	// too many wait for it.
	Encode(ctx context.Context, of Encoding, content []byte) ([]float32, *db.Sparse, error)
}

// An Encoding says what a vector is for.
type Encoding struct {
	Database, Collection, Modality string
	Dim                            int
	Input                          db.EncoderInput
}

// Errors for Encoder.
var (
	ErrEncoder    = rest.ErrEncoder
	ErrOverloaded = rest.ErrOverloaded
)

// maxText bounds a text for an encoder, in bytes.
const maxText = 16 << 10

// registerEncoding adds the routes that make vectors and codes.
func registerEncoding(t *router) {
	embed := handle(t, "POST", ofCollection+":embed", Read,
		"Make the vector of a text or of a file, by the encoder of the collection, or its code, by the hash",
		func(ctx context.Context, r *request, in *rest.Embedding) (*rest.Embedded, error) {
			c, err := r.collection(ctx)
			if err != nil {
				return nil, err
			}
			if (in.Text == "") == (in.File == nil) {
				return nil, fault.Invalid("text or file: one of them is to become a query")
			}
			input, content := db.InputText, []byte(in.Text)
			if in.File != nil {
				input, content = db.InputFile, in.File
			}
			return r.embed(ctx, c, in.From, input, content)
		})
	embed.untimed, embed.large = true, true
	handle(t, "POST", ofCollection+":encode", Read, "Make the code of a query or of an item, without storing it",
		func(ctx context.Context, r *request, in *rest.Encoding) (out *rest.Code, err error) {
			if in.Item != nil {
				c, err := r.collection(ctx)
				if err != nil {
					return nil, err
				}
				code, err := c.Encode(ctx, in.Item.Item())
				return &rest.Code{Code: code, Bits: 8 * len(code)}, err
			}
			q := &rest.Query{From: in.From, Vector: in.Vector, Key: in.Key, Code: in.Code, Text: in.Text}
			err = r.asks(ctx, q, func(ctx context.Context, c api.Collection, q db.Query) error {
				code, err := c.EncodeQuery(ctx, q)
				out = &rest.Code{Code: code, Bits: 8 * len(code)}
				return err
			})
			return out, err
		}, inSpace...)
}

// asks runs a query of a request on its collection. A text becomes a vector or a code first. Meanwhile other
// requests work: the program that makes a vector may take minutes.
func (r *request) asks(ctx context.Context, in *rest.Query,
	run func(ctx context.Context, c api.Collection, q db.Query) error) error {
	q, err := in.Query()
	if err == nil {
		err = r.bounded(q)
	}
	if err == nil && in.FacetLimit < 0 {
		err = fault.Invalid("facet_limit: %d: 0 or more is possible", in.FacetLimit)
	}
	if err != nil {
		return err
	}
	c, err := r.collection(ctx)
	if err != nil {
		return err
	}
	if in.Text != "" {
		if !in.Vector.IsZero() || in.Key != "" || in.Code != nil {
			return fault.Invalid("a query has one of vector, key, code and text")
		}
		r.leave()
		slow, cancel := context.WithCancelCause(r.Context())
		defer cancel(nil)
		defer context.AfterFunc(r.s.ends, func() { cancel(rest.ErrClosing) })()
		of, err := r.embed(slow, c, in.From, db.InputText, []byte(in.Text))
		if err != nil {
			return err
		}
		q.From, q.Vector, q.Sparse, q.Code = of.From, of.Vector.Dense, of.Vector.Sparse, of.Code
		timed, stop := context.WithTimeout(slow, r.s.opt.Timeout)
		defer stop()
		if err := r.s.wait(timed); err != nil {
			return err
		}
		ctx, r.placed = timed, true
	}
	return run(ctx, c, q)
}

// bounded refuses a query with too many hits for the server.
func (r *request) bounded(q db.Query) error {
	if most := r.mostHits(q); q.K > most {
		what := ""
		if most < r.s.opt.MaxK {
			what = " that have payloads or vectors"
		}
		return fmt.Errorf("%w: k is %d, and this server answers with %d hits at most%s: go on by after",
			rest.ErrTooLarge, q.K, most, what)
	}
	return nil
}

// mostHits returns the number of hits that an answer to a query may have.
func (r *request) mostHits(q db.Query) int {
	if q.Include&(db.IncludePayload|db.IncludeVectors) != 0 {
		return max(1, r.s.opt.MaxK/10)
	}
	return r.s.opt.MaxK
}

// embed returns the code of a text or a file, if the collection has a hash. Else it returns the vector, of
// the modality from, or of the only one for which there are such vectors; or, where no encoder reads texts,
// the code of the labels that the text names.
func (r *request) embed(ctx context.Context, c api.Collection, from string, input db.EncoderInput,
	content []byte) (*rest.Embedded, error) {
	if input == db.InputText && len(bytes.TrimSpace(content)) == 0 {
		return nil, fault.Invalid("text: it is blank")
	}
	schema, err := c.Schema(ctx)
	if err != nil {
		return nil, err
	}
	if schema.Hash != "" {
		if hashed := r.s.hashed(&schema); hashed != input {
			return nil, fault.Invalid("the codes of collection %q are by %s, and this server makes none of %ss",
				c.Name(), schema.Hash, input)
		}
		code, err := r.hash(ctx, perceptual.Named(schema.Hash), content)
		return &rest.Embedded{From: from, Code: code}, err
	}
	possible := r.s.modalitiesOf(r.PathValue("database"), c.Name(), input)
	known := func(m db.Modality) bool { return m.Name == from }
	switch {
	case len(possible) == 0 && from != "" && !slices.ContainsFunc(schema.Modalities, known):
		return nil, fault.Invalid("from: unknown modality %q", from)
	case input == db.InputText && len(content) > maxText:
		return nil, fmt.Errorf("%w: text: it has %d bytes, and %d are possible", rest.ErrTooLarge, len(content),
			maxText)
	case len(possible) == 0:
		if input == db.InputText {
			if code := api.CodeOfWords(ctx, c, strings.TrimSpace(string(content))); code != nil {
				return &rest.Embedded{Code: code}, nil
			}
			return nil, fault.Invalid("text: %.60q is no label that collection %q has learned, and it has no encoder of texts here: fddhdb encoder DIR --set NAME=COMMAND stores one",
				content, c.Name())
		}
		return nil, fault.Invalid("collection %q has no encoder of %ss here: fddhdb encoder DIR --set NAME=COMMAND stores one",
			c.Name(), input)
	case from == "" && len(possible) == 1:
		from = possible[0]
	case !slices.Contains(possible, from):
		return nil, fault.Invalid("from: %q: the encoders of %ss are for %s", from, input,
			strings.Join(possible, ", "))
	}
	of := Encoding{Database: r.PathValue("database"), Collection: c.Name(), Modality: from, Input: input}
	for _, m := range schema.Modalities {
		if m.Name == from {
			of.Dim = m.Dim
		}
	}
	dense, sparse, err := r.s.opt.Encoder.Encode(ctx, of, content)
	if errors.Is(context.Cause(ctx), rest.ErrClosing) {
		err = rest.ErrClosing
	}
	return &rest.Embedded{From: from, Vector: rest.Vector{Dense: dense, Sparse: sparse}}, err
}

// hashed returns what the server makes codes of by the hash of a collection; "" if it makes none.
func (s *Server) hashed(schema *db.Schema) db.EncoderInput {
	switch hash := perceptual.Named(schema.Hash); {
	case hash == nil:
	case hash.OfText != nil:
		return db.InputText
	case s.opt.Decode != nil:
		return db.InputFile
	}
	return ""
}

// hash returns the code of a text or a picture. It takes a place for that. A picture in memory is much larger
// than its file, so there is one at most for each processor.
func (r *request) hash(ctx context.Context, by *perceptual.Hash, content []byte) (code []byte, err error) {
	if by.OfPicture != nil {
		select {
		case r.s.decoding <- struct{}{}:
			defer func() { <-r.s.decoding }()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if err := r.s.wait(ctx); err != nil {
		return nil, err
	}
	defer r.s.leave()
	if by.OfText != nil {
		return by.OfText(string(content)), nil
	}
	m, err := r.s.opt.Decode(bytes.NewReader(content))
	if err != nil {
		return nil, fault.Invalid("file: %w", err)
	}
	code, _ = by.OfPicture(m)
	return code, nil
}

// modalitiesOf returns the modalities of a collection for which there are vectors of such inputs.
func (s *Server) modalitiesOf(database, collection string, input db.EncoderInput) []string {
	if s.opt.Encoder == nil {
		return []string{}
	}
	return append([]string{}, s.opt.Encoder.Modalities(database, collection, input)...)
}
