package db

// A catalogue is all collections as readers see them. It is immutable: with and without
// return another one, for some 100 bytes a level of its maps.
type catalogue struct {
	collections persistentMap[uint32, *collectionView] // by id
	ids         persistentMap[string, uint32]          // by name
	tables      tableBytes                             // of all collections
}

// with returns the catalogue with collections, in place of those of the same ids.
func (c catalogue) with(changed ...*collectionView) catalogue {
	owned := c.collections.len() == 0 // as at opening: what is made here has no readers yet
	for _, cv := range changed {
		if old, found := c.collections.get(cv.ID); found {
			c.tables = c.tables.minus(old.tables)
		} else {
			c.ids = c.ids.set(cv.Name, cv.ID, owned) // a name never changes
		}
		c.collections = c.collections.set(cv.ID, cv, owned)
		c.tables = c.tables.plus(cv.tables)
	}
	return c
}

// without returns the catalogue without a collection.
func (c catalogue) without(id uint32) catalogue {
	if old, found := c.collections.get(id); found {
		c.ids = c.ids.without(old.Name)
		c.collections = c.collections.without(id)
		c.tables = c.tables.minus(old.tables)
	}
	return c
}

// named returns the collection of a name.
func (c catalogue) named(name string) (*collectionView, bool) {
	id, found := c.ids.get(name)
	if !found {
		return nil, false
	}
	return c.collections.get(id)
}
