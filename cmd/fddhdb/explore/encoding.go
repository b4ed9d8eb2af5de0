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

// An Encoder is a program that makes vectors of texts, for a collection or for all.
type Encoder struct {
	encoder.Program
	Collection string // "": all that have the modality; such a one goes before that of a collection
}

const keptVectors = 64 // texts of one encoder whose vectors are kept

// words makes vectors of texts. It keeps the latest ones, as sliders of the page ask for
// the same text again.
type words struct {
	*encoder.Encoder
	turn *room // of one place, held while a text is encoded

	mu    sync.Mutex                // guards kept and order
	kept  map[string]encoder.Vector // by text
	order []string                  // of kept, the oldest first
}

func newWords(p encoder.Program) *words {
	return &words{Encoder: encoder.New(p), turn: newRoom(1), kept: map[string]encoder.Vector{}}
}

// wordsOf returns the encoder of a modality of a collection, nil if there is none.
func (s *Server) wordsOf(collection, modality string) *words {
	if w := s.words[encoderOf{"", modality}]; w != nil {
		return w
	}
	return s.words[encoderOf{collection, modality}]
}

// encoderOf names what an Encoder is for.
type encoderOf struct{ collection, modality string }

// wordsOfRequest returns the encoder that a request needs, nil if none.
func (s *Server) wordsOfRequest(v url.Values) *words {
	if !v.Has("text") {
		return nil
	}
	at := (&parameters{values: v}).place()
	return s.wordsOf(at.collection, v.Get("from"))
}

// vector returns the vector of a text, of dim dimensions.
func (w *words) vector(ctx context.Context, dim int, text string) (encoder.Vector, error) {
	if x, ok := w.known(text); ok {
		return x, nil
	}
	if err := w.turn.enter(ctx); err != nil {
		return encoder.Vector{}, err
	}
	defer w.turn.leave()
	if x, ok := w.known(text); ok { // the request before had the same text
		return x, nil
	}
	all, err := w.Encode(ctx, dim, []string{text})
	if err != nil {
		return encoder.Vector{}, encodingError(err)
	}
	w.keep(text, all[0])
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

func (w *words) known(text string) (encoder.Vector, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	x, ok := w.kept[text]
	return x, ok
}

func (w *words) keep(text string, x encoder.Vector) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.kept[text]; !ok {
		w.kept[text] = x
		w.order = append(w.order, text)
	}
	if len(w.order) > keptVectors {
		delete(w.kept, w.order[0])
		w.order = w.order[1:]
	}
}

// encodersFor returns the modalities of a collection that can be searched from by text.
func (s *Server) encodersFor(collection string, modalities []db.Modality) []string {
	names := []string{}
	for _, m := range modalities {
		if s.wordsOf(collection, m.Name) != nil {
			names = append(names, m.Name)
		}
	}
	return names
}
