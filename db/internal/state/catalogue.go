package state

// A Catalogue holds all collections as readers see them. It is immutable: With and without return another
// one, at a cost of some 100 bytes a level of its maps. Both maps have the same collections.
type Catalogue struct {
	Collections persistentMap[uint32, *CollectionView] // by id
	IDs         persistentMap[string, uint32]          // by name
	Tables      TableBytes                             // the sum of CollectionView.tables
	Rerank      TableBytes                             // the sum of CollectionView.rerank
}

// With returns the catalogue with these collections in place of those with the same ids. The id and the name
// of a collection never change, and no other collection gets them.
func (c Catalogue) With(changed ...*CollectionView) Catalogue {
	owned := c.Collections.Len() == 0 // at opening: the new maps have no readers yet
	for _, cv := range changed {
		if old, found := c.Collections.Get(cv.ID); found {
			c.Tables, c.Rerank = c.Tables.minus(old.tables), c.Rerank.minus(old.rerank)
		} else {
			c.IDs = c.IDs.set(cv.Name, cv.ID, owned) // a name never changes
		}
		c.Collections = c.Collections.set(cv.ID, cv, owned)
		c.Tables, c.Rerank = c.Tables.plus(cv.tables), c.Rerank.plus(cv.rerank)
	}
	return c
}

// without returns the catalogue without a collection, which may be absent.
func (c Catalogue) without(id uint32) Catalogue {
	if old, found := c.Collections.Get(id); found {
		c.IDs = c.IDs.without(old.Name)
		c.Collections = c.Collections.without(id)
		c.Tables, c.Rerank = c.Tables.minus(old.tables), c.Rerank.minus(old.rerank)
	}
	return c
}

// Named returns the collection with a name, and whether there is one.
func (c Catalogue) Named(name string) (*CollectionView, bool) {
	id, found := c.IDs.Get(name)
	if !found {
		return nil, false
	}
	return c.Collections.Get(id)
}
