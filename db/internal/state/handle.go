package state

// A Collection is a handle on a collection of an open database, for rooms that write to it or
// learn from it: a value to be passed on, which holds nothing open. The collection may be
// dropped meanwhile; then its methods give an ErrNotFound. Read and Loaded enter the Guard;
// for the others the caller must have, or run in the background.
type Collection struct {
	DB   *Database
	ID   uint32 // see record.Descriptor.ID; this is what counts
	Name string // for the words of errors
}

// Read gives f the present view of the database and of the collection, and keeps both and the
// database open as long as f runs.
func (c Collection) Read(f func(v *View, cv *CollectionView) error) error {
	return c.DB.Read(func(v *View) error {
		cv, err := v.Collection(c.ID, c.Name)
		if err != nil {
			return err
		}
		return f(v, cv)
	})
}
