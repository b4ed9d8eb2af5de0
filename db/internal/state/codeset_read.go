package state

import (
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
)

// CodesFor returns the codes in which items that have the modality to are found;
// empty: any items.
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
	if cv.Space.Targets[0] == record.SharedTarget {
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

// NumberOf returns the number of the code that a row carries.
func (v *CodeSetView) NumberOf(r pebble.Reader, row uint32) (n uint32, found bool, err error) {
	if v.Table != nil {
		n, found = v.Table.CodeOf(row)
		return n, found, nil
	}
	rc, found, err := v.RowCode(r, row)
	return rc.Code, found, err
}

// CodeOf returns the code with a number that stands in a row; it must not be written
// to.
func (v *CodeSetView) CodeOf(r pebble.Reader, n, row uint32) (codec.Code, error) {
	if v.Table != nil {
		if code := v.Table.Code(n); code != nil {
			return code, nil
		}
		return nil, fault.Corrupt(fmt.Errorf("number %d does not exist", n), "code of row %d", row)
	}
	return v.Code(r, n, row)
}

// ItemCode returns the code of a row for this target, or, where it has none there, in
// the first in which it has one: codes of all targets of a space can be compared.
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

// Unlearned is about a modality that the model does not know.
func (cv *CollectionView) Unlearned(t int) error {
	return fmt.Errorf("%w: the model of collection %q knows nothing of modality %q, which no labelled item had when it was trained: train again",
		fault.ErrNoModel, cv.Name, cv.Modalities[t].Name)
}
