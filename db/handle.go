package db

// A collection is a collection of an open database, for those who write to it or learn from it.
type collection struct {
	db   *database
	id   uint32
	name string
}

// read gives f the state of the collection, and keeps that and the database open as long as f
// runs.
func (c collection) read(f func(v *view, cv *collectionView) error) error {
	return c.db.read(func(v *view) error {
		cv, err := v.collection(c.id, c.name)
		if err != nil {
			return err
		}
		return f(v, cv)
	})
}
