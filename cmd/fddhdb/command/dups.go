package command

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"iter"
	"maps"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/flags"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/run"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/codec/perceptual"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
)

// A dups is a run of dups.
type dups struct {
	*run.Verb
	db.Likeness
	q             db.GroupQuery
	against       string
	pairs         bool
	limit, delete int
}

func dupsCommand(e *run.Env) *cobra.Command {
	v := e.NewVerb(run.GroupLearn, "dups DIR [--radius R | --modality NAME --min-similarity S]",
		"Find duplicates: groups of items that are alike", `
		Dups lists the groups of items whose codes differ in at most --radius bits, exactly.
		Codes that import --pictures or --texts has made need no radius: it is that of the
		hash, 31 of pdq, 7 of phash, 4 of dhash and 3 of simhash. The first item of a group
		is the one to keep, and the others are within the radius of it. An item is in one
		group at most.

		--keep says which item of a group is the one to keep:
		  oldest     the item that was stored first (default)
		  newest     the item that was stored last
		  max FIELD  the greatest value of a field of numbers or times; also min FIELD
		  EXPR       an item that matches an expression, see scan
		Of equal items the oldest is kept.

		--delete N deletes all items of the groups but the first ones, if they are N. Run the
		verb without it before: it changes nothing, and says the number.

		--connected joins groups that have an item in common. Such a group may have items that
		are not like its first one, so --delete refuses it. --pairs lists pairs of items, each
		once: the later item first. --against NAME lists the pairs of an item of the
		collection and one of another collection; --delete N then deletes the items of the
		collection.

		With --modality items are alike whose vectors have at least the similarity
		--min-similarity, by the metric of the modality. An index of vectors (see index) makes
		it faster, and may miss some: --recall 1 compares all.

		Each line of JSON has a cursor: --after CURSOR goes on behind it. Pairs behind the last
		cursor are those of items that have been stored since.`, `
		fddhdb dups photos.db
		fddhdb dups hashes.db --radius 8 --keep "max bytes" --delete 217
		fddhdb dups hashes.db --radius 8 --pairs --json
		fddhdb dups photos.db --modality image --min-similarity .97
		fddhdb dups hashes.db --collection uploads --against banned --radius 31`).OnCollection().InSpace().Filtered().PrintsLines()
	o, f := dups{Verb: v}, v.Flags
	v.Count(&o.Radius, "radius", 0, 0, "greatest distance between codes, in `BITS` (default: that of the hash); 0: equal codes")
	f.StringVar(&o.Modality, "modality", "", "compare the vectors of the modality `NAME`, not codes")
	f.Float32Var(&o.MinSimilarity, "min-similarity", 0, "least similarity `S` of vectors")
	flags.Recall(f, &o.Recall, "the part `X` of similar items to find; 1 compares all vectors")
	f.StringVar(&o.q.Keep, "keep", "oldest", "the item to keep: `oldest`, newest, max FIELD, min FIELD or EXPR")
	f.BoolVar(&o.q.Connected, "connected", false, "join groups that have an item in common")
	f.BoolVar(&o.pairs, "pairs", false, "list pairs, not groups")
	f.StringVar(&o.against, "against", "", "list pairs with the items of the collection `NAME`")
	v.Count(&o.limit, "limit", 0, 1, "stop after `N` groups or pairs (default: all)")
	f.StringVar(&o.q.After, "after", "", "go on behind the `CURSOR` of a line")
	v.Count(&o.delete, "delete", 0, 1, "delete the items that are not to be kept, which are `N`")
	return v.Does(func() error {
		if err := o.check(); err != nil {
			return err
		}
		if o.Given("delete") {
			return v.Change(func() error { return o.near(o.remove) })
		}
		return v.Share(func() error { return o.near(o.list) })
	})
}

// check checks flags that do not go together.
func (o *dups) check() error {
	vectors := o.Modality != "" || o.MinSimilarity != 0
	switch {
	case vectors && o.Given("radius"):
		return exit.Usagef("--radius is of codes, --modality and --min-similarity of vectors: leave one out")
	case vectors && (o.Modality == "" || o.MinSimilarity == 0):
		return exit.Usagef("--modality NAME and --min-similarity S, other than 0, go together")
	case (o.pairs || o.against != "") && (o.Given("keep") || o.q.Connected):
		return exit.Usagef("--keep and --connected are about groups, and not about pairs")
	case o.Given("delete") && (o.q.Connected || o.pairs || o.limit > 0 || o.q.After != ""):
		return exit.Usagef("--delete goes with neither --connected, --pairs, --limit nor --after: list what would be deleted without it")
	}
	o.Where = o.Filter.Expr
	return nil
}

// near sets the radius, if the user has not, to the one of the hash of the collection.
func (o *dups) near(f func() error) error {
	if hash := perceptual.Named(o.Schema.Hash); o.Modality == "" && !o.Given("radius") {
		if hash == nil {
			return exit.Usagef("dups needs --radius BITS, or --modality NAME and --min-similarity S: fddhdb %s",
				o.Cmd.Use)
		}
		o.Radius = hash.Near
	}
	o.q.Likeness = o.Likeness
	return f()
}

// found yields groups. A pair becomes a group of two: the first item is the other one of the pair, so an item
// that is deleted is always one of the collection.
func (o *dups) found() iter.Seq2[db.Group, error] {
	if !o.pairs && o.against == "" {
		return o.Collection.Groups(o.Ctx, o.q)
	}
	q := db.PairQuery{Likeness: o.q.Likeness, Against: o.against, After: o.q.After}
	return func(yield func(db.Group, error) bool) {
		for p, err := range o.Collection.Pairs(o.Ctx, q) {
			if !yield(db.Group{Cursor: p.Cursor, Items: []db.GroupItem{{Key: p.Other},
				{Key: p.Key, Distance: p.Distance, Similarity: p.Similarity}}}, err) {
				return
			}
		}
	}
}

// each calls f with each group that is asked for.
func (o *dups) each(f func(db.Group) error) error {
	o.Progress().Report("comparing", 0, 0)
	defer o.Progress().End()
	n := 0
	for g, err := range o.found() {
		o.Progress().End() // as f may print
		if err == nil {
			err = f(g)
		}
		if n++; err != nil || n == o.limit {
			return err
		}
	}
	return nil
}

// list lists the groups or pairs.
func (o *dups) list() error {
	pairs := o.pairs || o.against != ""
	if o.JSON {
		if err := o.tellRecall(); err != nil {
			return err
		}
		return o.each(func(g db.Group) error {
			if !pairs {
				return o.PrintJSON(g)
			}
			last := g.Items[1]
			return o.PrintJSON(db.Pair{Key: last.Key, Other: g.Items[0].Key, Distance: last.Distance,
				Similarity: last.Similarity, Cursor: g.Cursor})
		})
	}
	by := term.Right("bits")
	if o.Modality != "" {
		by = term.Right("similarity")
	}
	apart := func(x db.GroupItem) any {
		if o.Modality != "" {
			return x.Similarity
		}
		return x.Distance
	}
	columns := []term.Column{term.Right("group"), term.Left("key"), by}
	if pairs {
		columns = []term.Column{term.Left("key"), term.Left("other"), by}
	}
	t := o.NewLongTable(columns)
	groups, items, extra := 0, 0, map[string]bool{}
	err := o.each(func(g db.Group) error {
		groups++
		for i, x := range g.Items {
			items++
			switch {
			case pairs && i > 0:
				t.Add(term.TextCell(x.Key), term.TextCell(g.Items[0].Key), apart(x))
				extra[x.Key] = true
			case !pairs && i == 0:
				t.Add(groups, term.TextCell(x.Key), "keep")
			case !pairs:
				t.Add(groups, term.TextCell(x.Key), apart(x))
			}
		}
		return nil
	})
	if groups > 0 || o.Flat() {
		t.End()
	}
	if err != nil || o.Flat() {
		return err
	}
	switch {
	case groups == 0:
		o.Printf("no two items are alike\n")
	case pairs:
		o.Printf("%s\n", term.Plural(groups, "pair", "pairs"))
	default:
		o.Printf("%s in %s\n", term.Plural(items, "item", "items"), term.Plural(groups, "group", "groups"))
	}
	if err := o.tellRecall(); err != nil {
		return err
	}
	n := items - groups
	if pairs {
		n = len(extra)
	}
	if n > 0 && o.limit == 0 && o.q.After == "" && !o.q.Connected && !o.pairs {
		o.Notef("--delete %d deletes %s", n, map[bool]string{true: "the items of the first column",
			false: "all items but those to keep"}[pairs])
	}
	return nil
}

// tellRecall says what the index of vectors may have missed.
func (o *dups) tellRecall() error {
	if o.Modality == "" || o.Recall == 1 {
		return nil
	}
	stats, err := o.Collection.Stats(o.Ctx)
	if err != nil {
		return err
	}
	for _, x := range stats.VectorIndexes {
		if x.Modality == o.Modality && x.Complete {
			o.Notef("found by the index of vectors: %.3g of the similar items of an item, on average; --recall 1 finds all",
				cmp.Or(o.Recall, x.Recall))
		}
	}
	return nil
}

// remove deletes the items that are not to be kept, if they are as many as the user says.
//
// Others may write meanwhile, so an item goes only if it and the item that is kept for it are as they were
// before the groups were found: the groups are found, the items are read, the groups are found again, and
// the commit has as its condition that both items are still the same.
func (o *dups) remove() error {
	kept := o.Collection
	if o.against != "" {
		var err error
		if kept, err = run.FindCollection(o.Ctx, o.DB, o.against); err != nil {
			return err
		}
	}
	extra, keeps, err := o.extra()
	if err != nil {
		return err
	}
	if len(extra) != o.delete {
		return exit.Failedf("--delete %d: there are %d items to delete now: list them first, without --delete",
			o.delete, len(extra))
	}
	was := map[string][sha256.Size]byte{} // by key of an item to delete: it and the one that is kept for it
	for _, key := range extra {
		if _, _, was[key], err = o.both(key, kept, keeps[key]); err != nil {
			return err
		}
	}
	_, now, err := o.extra()
	if err != nil {
		return err
	}
	if !maps.Equal(keeps, now) {
		return exit.Failedf("items have changed meanwhile: list the groups again")
	}
	for n := 0; n < len(extra); {
		b, part, expected := o.DB.NewBatch(), 0, map[string]bool{}
		for ; n+part < len(extra) && part < deletedTogether && !b.Full() && err == nil; part++ {
			key := extra[n+part]
			it, keep, sum, failed := o.both(key, kept, keeps[key])
			switch err = failed; {
			case err != nil:
			case sum != was[key]:
				err = exit.Failedf("item %q, or %q, has changed meanwhile: list the groups again", key, keep.Key)
			default:
				if !expected[keep.Key] {
					expected[keep.Key] = true
					err = b.Expect(kept, keep.Key, keep)
				}
				err = errors.Join(err, b.Expect(o.Collection, key, it), b.Delete(o.Collection, key))
			}
		}
		if err == nil {
			err = b.Commit(o.Ctx)
		}
		if err != nil {
			return exit.Failedf("%s deleted, then: %w", term.Plural(n, "item", "items"), err)
		}
		n += part
	}
	return o.Tell(map[string]int{"deleted": o.delete}, "deleted %s", term.Plural(o.delete, "item", "items"))
}

// deletedTogether is the number of items that one commit deletes at most.
const deletedTogether = 1000

// extra returns the keys of the items that are not to be kept, and for each of them the item that is.
func (o *dups) extra() (keys []string, keeps map[string]string, err error) {
	keeps = map[string]string{}
	err = o.each(func(g db.Group) error {
		for _, x := range g.Items[1:] {
			if keeps[x.Key] == "" {
				keeps[x.Key] = g.Items[0].Key
				keys = append(keys, x.Key)
			}
		}
		return nil
	})
	return keys, keeps, err
}

// both reads an item and the one of a collection that is kept for it, with a sum of their contents.
func (o *dups) both(key string, c api.Collection, keep string) (it, kept *db.Item, sum [sha256.Size]byte,
	err error) {
	if it, err = o.Collection.Get(o.Ctx, key); err != nil {
		return nil, nil, sum, err
	}
	if kept, err = c.Get(o.Ctx, keep); err != nil {
		return nil, nil, sum, err
	}
	text, err := json.Marshal([]*db.Item{it, kept})
	return it, kept, sha256.Sum256(text), err
}
