package state

// A Collection is a collection of an open database, for those who write to it or learn from it.
type Collection struct {
	DB   *Database
	ID   uint32
	Name string
}

// Read gives f the state of the collection, and keeps that and the database open as long as f
// runs.
func (c Collection) Read(f func(v *View, cv *CollectionView) error) error {
	return c.DB.Read(func(v *View) error {
		cv, err := v.Collection(c.ID, c.Name)
		if err != nil {
			return err
		}
		return f(v, cv)
	})
}
