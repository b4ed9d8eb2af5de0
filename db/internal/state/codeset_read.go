package state

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
)

// CodesFor returns the codes in which a search looks that wants items which have the modality
// named to, or any items if that is "". The error says what to do: an ErrNoModel if nothing is
// trained; an ErrInvalid for a name that does not exist; an ErrCorrupt if loading the codes has
// found damage.
func (cv *CollectionView) CodesFor(to string) (*CodeSetView, error) {
	if cv.Space == nil {
		return nil, fmt.Errorf("%w: collection %q: train it first", fault.ErrNoModel, cv.Name)
	}
	if to != "" {
		if _, err := cv.ModalityOf(to); err != nil {
			return nil, err
		}
	}
	return &cv.Codes, cv.Codes.damage()
}

// NumberOf returns the number of the code that a row carries, from memory or, while codes are
// not loaded, from the store; found is false where it carries none. r is the snapshot of the
// view.
func (v *CodeSetView) NumberOf(r pebble.Reader, row uint32) (n uint32, found bool, err error) {
	if v.Table != nil {
		n, found = v.Table.CodeOf(row)
		return n, found, nil
	}
	rc, found, err := v.RowCode(r, row)
	return rc.Code, found, err
}

// CodeOf returns the code with number n, from memory or from the store. It may be shared, and
// must not be written to. row, which carries it, is there for the words of errors.
func (v *CodeSetView) CodeOf(r pebble.Reader, n, row uint32) (codec.Code, error) {
	if v.Table != nil {
		if code := v.Table.Code(n); code != nil {
			return code, nil
		}
		return nil, fault.Corrupt(fmt.Errorf("number %d does not exist", n), "code of row %d", row)
	}
	return v.Code(r, n, row)
}

// ItemCode returns the code of a row; found is false where it has none. The code must not be written to.
func (cv *CollectionView) ItemCode(r pebble.Reader, row uint32) (code codec.Code, found bool, err error) {
	n, found, err := cv.Codes.NumberOf(r, row)
	if err != nil || !found {
		return nil, false, err
	}
	code, err = cv.Codes.CodeOf(r, n, row)
	return code, true, err
}

// Unlearned returns the error, an ErrNoModel, about modality t of the collection, which the
// model of the space does not know.
func (cv *CollectionView) Unlearned(t int) error {
	return fmt.Errorf("%w: the model of collection %q knows nothing of modality %q, which no labelled item had when it was trained: train again",
		fault.ErrNoModel, cv.Name, cv.Modalities[t].Name)
}
