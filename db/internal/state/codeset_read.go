package state

import (
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
)

// CodesFor returns the code set that a search looks in which wants items that have the
// modality named to, or any items if that is "". It is one of cv.Sets. Where there is none the
// error says what to do: an ErrNoModel if nothing is trained, or not for this modality; an
// ErrInvalid for a name that does not exist, or "" where there are codes for each modality; an
// ErrCorrupt if loading the codes has found damage.
func (cv *CollectionView) CodesFor(to string) (*CodeSetView, error) {
	if cv.Space == nil {
		return nil, fmt.Errorf("%w: collection %q: train it first", fault.ErrNoModel, cv.Name)
	}
	t := -1
	if to != "" {
		var err error
		if t, err = cv.ModalityOf(to); err != nil {
			return nil, err
		}
	}
	if cv.Space.Targets[0] == record.SharedTarget { // then it is the only one
		return &cv.Sets[0], cv.Sets[0].damage()
	}
	if t < 0 {
		var names []string
		for i := range cv.Sets {
			t, _ := cv.Sets[i].Modality()
			names = append(names, cv.Modalities[t].Name)
		}
		return nil, fault.Invalid("collection %q has codes for each target modality: name the one that is wanted, %s", cv.Name, strings.Join(names, " or "))
	}
	for i := range cv.Sets {
		if of, _ := cv.Sets[i].Modality(); of == t {
			return &cv.Sets[i], cv.Sets[i].damage()
		}
	}
	return nil, cv.Unlearned(t)
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

// ItemCode returns the code of a row in set, or, where it has none there, in the first of
// cv.Sets in which it has one, as codes of all targets of a space can be compared. found is
// false where it has none in any. The code must not be written to.
func (cv *CollectionView) ItemCode(r pebble.Reader, set *CodeSetView, row uint32) (code codec.Code, found bool, err error) {
	n, found, err := set.NumberOf(r, row)
	for i := 0; err == nil && !found && i < len(cv.Sets); i++ {
		set = &cv.Sets[i]
		n, found, err = set.NumberOf(r, row)
	}
	if err != nil || !found {
		return nil, false, err
	}
	code, err = set.CodeOf(r, n, row)
	return code, true, err
}

// Unlearned returns the error, an ErrNoModel, about modality t of the collection, which the
// model of the space does not know.
func (cv *CollectionView) Unlearned(t int) error {
	return fmt.Errorf("%w: the model of collection %q knows nothing of modality %q, which no labelled item had when it was trained: train again",
		fault.ErrNoModel, cv.Name, cv.Modalities[t].Name)
}
