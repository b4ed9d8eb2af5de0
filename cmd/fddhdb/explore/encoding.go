package explore

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/encoder"
	"github.com/fddhdb/fddhdb/db"
)

// An Encoder is a program of a collection that makes vectors of texts or pictures.
type Encoder struct {
	encoder.Program
	Collection string
	Input      db.EncoderInput // db.InputFile: of pictures, by their paths
}

const keptVectors = 64 // inputs of one encoder whose vectors are kept

// An encoding makes vectors of texts or pictures. It keeps the latest ones, as sliders of the page
// ask for the same input again.
type encoding struct {
	*encoder.Encoder
	input db.EncoderInput
	turn  *room // of one place, held while an input is encoded

	mu    sync.Mutex                // guards kept and order
	kept  map[string]encoder.Vector // by input
	order []string                  // of kept, the oldest first
}

func newEncoding(e Encoder) *encoding {
	return &encoding{Encoder: encoder.New(e.Program), input: e.Input, turn: newRoom(1),
		kept: map[string]encoder.Vector{}}
}

// encoderOf names what an Encoder is for.
type encoderOf struct {
	collection, modality string
	input                db.EncoderInput
}

// encodingOfRequest returns the encoder that a request needs, nil if none.
func (s *Server) encodingOfRequest(v url.Values) *encoding {
	of := encoderOf{(&parameters{values: v}).place().collection, v.Get("from"), db.InputText}
	if v.Get("picture") != "" {
		of.input = db.InputFile
	} else if !v.Has("text") {
		return nil
	}
	return s.encodings[of]
}

// vector returns the vector of an input, of dim dimensions. Until it returns, the program may read
// a file that is the input.
func (e *encoding) vector(ctx context.Context, dim int, input string) (encoder.Vector, error) {
	if x, ok := e.known(input); ok {
		return x, nil
	}
	if err := e.turn.enter(ctx); err != nil {
		return encoder.Vector{}, err
	}
	defer e.turn.leave()
	if x, ok := e.known(input); ok { // the request before had the same input
		return x, nil
	}
	if e.input == db.InputFile {
		// Encode would return while the program goes on, and may read the file
		ctx = context.WithoutCancel(ctx)
	}
	all, err := e.Encode(ctx, dim, []string{input})
	if err != nil {
		return encoder.Vector{}, encodingError(err)
	}
	e.keep(input, all[0])
	return all[0], nil
}

// encodingError gives the error of an encoder its status.
func encodingError(err error) error {
	of, is := errors.AsType[*encoder.Error](err)
	switch {
	case !is:
		return err
	case of.Reason == encoder.Refused:
		return &statusError{http.StatusUnprocessableEntity, err}
	case of.Reason == encoder.Late:
		return &statusError{http.StatusGatewayTimeout, err}
	}
	return &statusError{http.StatusBadGateway, err}
}

func (e *encoding) known(input string) (encoder.Vector, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	x, ok := e.kept[input]
	return x, ok
}

func (e *encoding) keep(input string, x encoder.Vector) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, ok := e.kept[input]; !ok {
		e.kept[input] = x
		e.order = append(e.order, input)
	}
	if len(e.order) > keptVectors {
		delete(e.kept, e.order[0])
		e.order = e.order[1:]
	}
}

// encodersFor returns the modalities of a collection that can be searched from by text, or by picture.
func (s *Server) encodersFor(collection string, modalities []db.Modality, input db.EncoderInput) []string {
	names := []string{}
	for _, m := range modalities {
		if s.encodings[encoderOf{collection, m.Name, input}] != nil {
			names = append(names, m.Name)
		}
	}
	return names
}
