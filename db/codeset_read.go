package db

import (
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
)

// codesFor returns the codes in which items that have the modality to are found;
// empty: any items.
func (cv *collectionView) codesFor(to string) (*codeSetView, error) {
	if cv.space == nil {
		return nil, fmt.Errorf("%w: collection %q: train it first", fault.ErrNoModel, cv.Name)
	}
	t := -1
	if to != "" {
		var err error
		if t, err = cv.ModalityOf(to); err != nil {
			return nil, err
		}
	}
	if cv.space.Targets[0] == record.SharedTarget {
		return &cv.sets[0], cv.sets[0].damage()
	}
	if t < 0 {
		var names []string
		for i := range cv.sets {
			t, _ := cv.sets[i].Modality()
			names = append(names, cv.Modalities[t].Name)
		}
		return nil, fault.Invalid("collection %q has codes for each target modality: name the one that is wanted, %s", cv.Name, strings.Join(names, " or "))
	}
	for i := range cv.sets {
		if of, _ := cv.sets[i].Modality(); of == t {
			return &cv.sets[i], cv.sets[i].damage()
		}
	}
	return nil, cv.unlearned(t)
}

// numberOf returns the number of the code that a row carries.
func (v *codeSetView) numberOf(r pebble.Reader, row uint32) (n uint32, found bool, err error) {
	if v.table != nil {
		n, found = v.table.CodeOf(row)
		return n, found, nil
	}
	rc, found, err := v.RowCode(r, row)
	return rc.Code, found, err
}

// codeOf returns the code with a number that stands in a row; it must not be written
// to.
func (v *codeSetView) codeOf(r pebble.Reader, n, row uint32) (codec.Code, error) {
	if v.table != nil {
		if code := v.table.Code(n); code != nil {
			return code, nil
		}
		return nil, fault.Corrupt(fmt.Errorf("number %d does not exist", n), "code of row %d", row)
	}
	return v.Code(r, n, row)
}

// itemCode returns the code of a row for this target, or, where it has none there, in
// the first in which it has one: codes of all targets of a space can be compared.
func (cv *collectionView) itemCode(r pebble.Reader, set *codeSetView, row uint32) (code codec.Code, found bool, err error) {
	n, found, err := set.numberOf(r, row)
	for i := 0; err == nil && !found && i < len(cv.sets); i++ {
		set = &cv.sets[i]
		n, found, err = set.numberOf(r, row)
	}
	if err != nil || !found {
		return nil, false, err
	}
	code, err = set.codeOf(r, n, row)
	return code, true, err
}
