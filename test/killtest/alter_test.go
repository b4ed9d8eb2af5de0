package killtest

import (
	"fmt"
	"slices"

	"github.com/fddhdb/fddhdb/db"
)

// maxAltered bounds how often the collection of features is altered, over all
// processes.
const maxAltered = 60

// alteration returns the n-th alteration, from 1 on. After a kill all of it is there,
// or nothing.
func alteration(n int) db.Alteration {
	a := db.Alteration{AddFields: []db.Field{
		{Name: fmt.Sprint("extra", n), Type: db.Int, Indexed: n%2 == 0},
		{Name: fmt.Sprint("more", n), Type: db.String},
	}}
	if n%10 == 1 {
		a.AddModalities = []db.Modality{{Name: fmt.Sprint("sound", n), Dim: 2 + n}}
	}
	if n%3 == 0 {
		a.IndexFields = []string{fmt.Sprint("more", n-1)}
	}
	return a
}

// altered returns how many alterations the database has.
func altered(d *db.DB) (int, error) {
	c, err := d.Collection(features)
	if err != nil {
		return 0, err
	}
	s, err := c.Schema()
	if err != nil {
		return 0, err
	}
	want := schemas[features]
	for n := 0; ; n++ {
		if slices.Equal(s.Fields, want.Fields) && slices.Equal(s.Modalities, want.Modalities) {
			return n, nil
		}
		if n == maxAltered {
			return 0, fmt.Errorf("schema %+v, which alterations do not lead to", s)
		}
		a := alteration(n + 1)
		want.Fields, want.Modalities = slices.Concat(want.Fields, a.AddFields),
			slices.Concat(want.Modalities, a.AddModalities)
		for i := range want.Fields { // which are those of this loop by now
			want.Fields[i].Indexed = want.Fields[i].Indexed ||
				slices.Contains(a.IndexFields, want.Fields[i].Name)
		}
	}
}
