package explore

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/encoder"
	"github.com/fddhdb/fddhdb/db"
)

// encodingTime returns how long the encoder of a request may take, 0 if it needs none.
func (s *Server) encodingTime(v url.Values) time.Duration {
	input := db.InputText
	if v.Get("picture") != "" {
		input = db.InputFile
	} else if !v.Has("text") {
		return 0
	}
	return s.encoders.Longest((&parameters{values: v}).place().collection, v.Get("from"), input)
}

// encode returns the vector of a text, or of the file with a path, of dim dimensions.
func (s *Server) encode(ctx context.Context, q *query, input db.EncoderInput, dim int,
	content string) (encoder.Vector, error) {
	x, err := s.encoders.Encode(ctx, q.collection, q.from, input, dim, content)
	return x, encodingError(err)
}

// encodingError gives the error of an encoder its status.
func encodingError(err error) error {
	of, is := errors.AsType[*encoder.Error](err)
	switch {
	case errors.Is(err, encoder.ErrBusy):
		return &statusError{http.StatusServiceUnavailable, err}
	case !is:
		return err
	case of.Reason == encoder.Refused:
		return &statusError{http.StatusUnprocessableEntity, err}
	case of.Reason == encoder.Late:
		return &statusError{http.StatusGatewayTimeout, err}
	}
	return &statusError{http.StatusBadGateway, err}
}

// encodersFor returns the modalities of a collection that can be searched from by text, or by picture.
func (s *Server) encodersFor(collection string, modalities []db.Modality, input db.EncoderInput) []string {
	names, of := []string{}, s.encoders.Modalities(collection, input)
	for _, m := range modalities {
		if slices.Contains(of, m.Name) {
			names = append(names, m.Name)
		}
	}
	return names
}
