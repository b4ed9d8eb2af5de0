package repair

import (
	"errors"
	"fmt"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
)

// mendIndexes keeps the indexes of vectors whose descriptor can be read, and some centres. It copies no
// entries: an index begins anew, and takes rows in when the database is open, while searches compare
// vectors. One that has lost these is given up.
func (c *collectionMender) mendIndexes() error {
	seen := map[uint32]bool{}
	err := record.ForEach(c.store, codec.CollectionKey(codec.KindIndex, c.ID), func(key, value []byte) error {
		id := codec.LastNumber(key)
		seen[id] = true
		x, err := record.DecodeIndex(value, c.Descriptor, id)
		if err == nil && !x.Complete {
			return c.dropIndex(id) // as opening would
		}
		centres := 0
		if err == nil {
			if centres, err = c.mendCentres(x); err != nil {
				return err
			}
			if centres == 0 {
				err = errors.New("no centre can be read")
			}
		}
		if err != nil {
			return c.loseIndex(id, fault.Problem(err))
		}
		x.Covered, x.Churn = 0, record.MaxRows // it is made anew
		b, err := x.Encode()
		if err != nil {
			return err
		}
		return c.set(key, b)
	})
	if err != nil {
		return err
	}
	return record.ForEach(c.store, codec.CollectionKey(codec.KindCentre, c.ID), func(key, _ []byte) error {
		id := codec.LastNumber(key[:9])
		if seen[id] {
			return nil
		}
		seen[id] = true
		return c.loseIndex(id, "its descriptor is missing")
	})
}

// mendCentres deletes the centres of an index that cannot be read, whose vectors go to others, and
// returns how many are left.
func (c *collectionMender) mendCentres(x *record.VectorIndex) (left int, err error) {
	size := x.Geometry().Size()
	err = record.ForEach(c.store, codec.NumberKey(codec.KindCentre, c.ID, x.ID), func(key, value []byte) error {
		cell := codec.LastNumber(key)
		if _, err := record.DecodeCell(value, cell, size); err != nil || cell >= record.MaxCells {
			return c.delete(key)
		}
		left++
		return nil
	})
	return left, err
}

// loseIndex gives up an index, and tells why.
func (c *collectionMender) loseIndex(id uint32, why string) error {
	c.bad(fmt.Sprintf("index %d of vectors", id), codec.NumberKey(codec.KindIndex, c.ID, id), "lost: %s: make it anew", why)
	return c.dropIndex(id)
}

// dropIndex deletes an index.
func (c *collectionMender) dropIndex(id uint32) error {
	for _, kind := range []byte{codec.KindIndex, codec.KindCentre} {
		if err := c.deleteAll(codec.NumberKey(kind, c.ID, id)); err != nil {
			return err
		}
	}
	return nil
}
