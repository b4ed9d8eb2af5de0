package repair

import (
	"fmt"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
)

// mendIndexes keeps the indexes of vectors whose descriptor and centres can be read. It copies no
// entries: an index begins anew, and takes rows in when the database is open, while searches compare
// vectors. One that has lost centres is given up.
func (c *collectionMender) mendIndexes() error {
	return record.ForEach(c.store, codec.CollectionKey(codec.KindIndex, c.ID), func(key, value []byte) error {
		id := codec.LastNumber(key)
		x, err := record.DecodeIndex(value, c.Descriptor, id)
		if err == nil && !x.Complete {
			return c.dropIndex(id) // as opening would
		}
		centres := codec.NumberKey(codec.KindCentre, c.ID, id)
		if err == nil {
			_, err = x.ReadCentres(c.store, c.ID)
		}
		if err == nil && c.lostAny(centres) {
			err = fmt.Errorf("centres are lost")
		}
		if err != nil {
			c.bad(fmt.Sprintf("index %d of vectors", id), key, "lost: %s: make it anew", fault.Problem(err))
			return c.dropIndex(id)
		}
		x.Covered = 0
		b, err := x.Encode()
		if err != nil {
			return err
		}
		return c.set(key, b)
	})
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
