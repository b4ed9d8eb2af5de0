package db

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/model"
)

// revisionDescriptor is what is stored of a revision of a space besides its
// projections.
type revisionDescriptor struct {
	Version  int       `json:"version"`
	Revision uint32    `json:"revision"`
	Parent   uint32    `json:"parent,omitempty"` // absent: training
	Created  time.Time `json:"created"`
	Pinned   bool      `json:"pinned,omitempty"`
	Model    chunked   `json:"model"` // absent of revision 1, whose model is that of the space
}

// readRevision reads the model of a revision of a space.
func readRevision(r pebble.Reader, collection uint32, s *space, revision uint32) (*model.Model, error) {
	d, err := readRevisionDescriptor(r, collection, s.ID, revision)
	if err != nil {
		return nil, err
	}
	b, err := readChunks(r, codec.RevisionPrefix(collection, s.ID, revision), 1, d.Model)
	if err != nil {
		return nil, readError(err, "revision %d of space %d", revision, s.ID)
	}
	m, err := s.trained.UnmarshalRevision(b)
	if err != nil {
		return nil, corrupt(err, "revision %d of space %d", revision, s.ID)
	}
	return m, nil
}

func readRevisionDescriptor(r pebble.Reader, collection, space, revision uint32) (*revisionDescriptor, error) {
	b, err := get(r, codec.RevisionKey(collection, space, revision, 0))
	if err == nil && b == nil {
		err = errNotFound
	}
	if err != nil {
		return nil, readError(err, "descriptor of revision %d of space %d", revision, space)
	}
	d := &revisionDescriptor{}
	if err = json.Unmarshal(b, d); err == nil && (d.Version != 0 || d.Revision != revision) {
		err = fmt.Errorf("version %d, revision %d", d.Version, d.Revision)
	}
	if err != nil {
		return nil, corrupt(err, "descriptor of revision %d of space %d", revision, space)
	}
	return d, nil
}

var _ = errors.New
