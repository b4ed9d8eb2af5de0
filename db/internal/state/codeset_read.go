package state

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
)

// CodesFor returns the codes to search for items with the modality to; "" means any items. Errors: ErrNoModel
// if nothing is trained; ErrInvalid for an unknown name; ErrCorrupt if loading the codes has found damage.
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

// NumberOf returns the number of a row's code, from memory or, while codes are not loaded, from the store.
// found is false if the row has no code. r is the snapshot of the view.
func (v *CodeSetView) NumberOf(r pebble.Reader, row uint32) (n uint32, found bool, err error) {
	if v.Table != nil {
		n, found = v.Table.CodeOf(row)
		return n, found, nil
	}
	rc, found, err := v.RowCode(r, row)
	return rc.Code, found, err
}

// CodeOf returns the code with number n, from memory or from the store. It may be shared: do not write to it.
// row is a row with that code, for error messages.
func (v *CodeSetView) CodeOf(r pebble.Reader, n, row uint32) (codec.Code, error) {
	if v.Table != nil {
		if code := v.Table.Code(n); code != nil {
			return code, nil
		}
		return nil, fault.Corrupt(fmt.Errorf("number %d does not exist", n), "code of row %d", row)
	}
	return v.Code(r, n, row)
}

// ItemCode returns the code of a row; found is false if it has none. Do not write to the code.
func (cv *CollectionView) ItemCode(r pebble.Reader, row uint32) (code codec.Code, found bool, err error) {
	n, found, err := cv.Codes.NumberOf(r, row)
	if err != nil || !found {
		return nil, false, err
	}
	code, err = cv.Codes.CodeOf(r, n, row)
	return code, true, err
}

// Unlearned returns the ErrNoModel for modality t, which the model of the space does not know.
func (cv *CollectionView) Unlearned(t int) error {
	return fmt.Errorf("%w: the model of collection %q knows nothing of modality %q, which no labelled item had when it was trained: train again",
		fault.ErrNoModel, cv.Name, cv.Modalities[t].Name)
}
