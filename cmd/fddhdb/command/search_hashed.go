package command

import (
	"cmp"
	"maps"
	"slices"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/picture"
	"github.com/fddhdb/fddhdb/codec/perceptual"
	"github.com/fddhdb/fddhdb/db"
)

// eachHashed calls f with the codes of the pictures or texts of the flags, which the hash of the collection
// makes.
func (o *searching) eachHashed(f func(queryName, db.Query) error) error {
	hash, err := o.chooseHash()
	if err != nil {
		return err
	}
	for _, text := range o.texts {
		if err := f(text, db.Query{Code: hash.OfText(text)}); err != nil {
			return err
		}
	}
	for _, file := range o.picture {
		m, err := picture.Read(file)
		if err != nil {
			return exit.Failedf("--picture %s: %w", file, err)
		}
		code, _ := hash.OfPicture(m.Image)
		if o.turns {
			turns, _ := perceptual.PDQTurns(m.Image)
			o.turned = turns[:]
		}
		if err := f(file, db.Query{Code: code}); err != nil {
			return err
		}
	}
	return nil
}

// chooseHash returns the hash of the collection, which has to take what the flags have.
func (o *searching) chooseHash() (*perceptual.Hash, error) {
	flag := "--picture"
	if len(o.texts) > 0 {
		flag = "--text"
	}
	hash, name := perceptual.Named(o.Schema.Hash), o.Collection.Name()
	switch {
	case o.from != "":
		return nil, exit.Usagef("--from: collection %q has codes and no modalities: leave it out", name)
	case o.Schema.Hash == "":
		return nil, exit.Usagef("%s: collection %q does not say which hash makes its codes, as init --hash does: search by --code or --key", flag, name)
	case hash == nil:
		return nil, exit.Usagef("%s: the codes of collection %q are by %s, which this version does not know: search by --code or --key",
			flag, name, o.Schema.Hash)
	case (hash.OfText == nil) == (flag == "--text"):
		return nil, exit.Usagef("%s: the codes of collection %q are by %s: search by --text for a hash of texts, --picture for one of pictures",
			flag, name, hash.Name)
	case o.turns && hash.Name != "pdq":
		return nil, exit.Usagef("--turns: the codes of collection %q are by %s, and only pdq has turns", name, hash.Name)
	}
	return hash, nil
}

// find answers a query, within the radius if there is one.
func (o *searching) find(q db.Query) (*db.Result, error) {
	if o.Given("radius") {
		return o.Collection.SearchRadius(o.Ctx, q, o.radius)
	}
	return o.Collection.Search(o.Ctx, q)
}

// findTurned answers a query by all turns of a picture. An item counts by its least distance. Each of the k
// nearest items is among the k nearest of one turn; within a radius all items of each turn are read.
func (o *searching) findTurned(q db.Query) (answer *db.Result, err error) {
	nearest := map[string]db.Hit{}
	for _, q.Code = range o.turned {
		for more := true; more; more = q.After != "" {
			r, err := o.find(q)
			if err != nil {
				return nil, err
			}
			for _, hit := range r.Hits {
				if other, there := nearest[hit.Key]; !there || hit.Distance < other.Distance {
					nearest[hit.Key] = hit
				}
			}
			if answer = r; o.Given("radius") {
				q.After = r.Next
			}
		}
	}
	answer.Total, answer.Next = len(nearest), ""
	answer.Hits = slices.SortedFunc(maps.Values(nearest), func(a, b db.Hit) int {
		return cmp.Or(cmp.Compare(a.Distance, b.Distance), cmp.Compare(a.Row, b.Row))
	})
	answer.Hits = answer.Hits[:min(len(answer.Hits), o.k)]
	return answer, nil
}
