package command

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/flags"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/forms"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/run"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
)

func initCommand(e *run.Env) *cobra.Command {
	v := e.NewVerb(run.GroupItems, "init DIR (--modality NAME:DIM... | --codes BITS | --hash NAME)",
		"Create a database or a further collection", `
		Init creates a database in the folder DIR, with one collection. On a database
		that exists it creates a further collection, which --collection names.

		A learned collection has modalities: the kinds of feature vectors that its items
		have, each with its number of dimensions. Training makes the codes. A modality with
		:sparse, such as bags of words, stores and computes only the numbers that are not 0;
		the codes are the same. A collection with --codes has no modalities and no training:
		its items bring codes of that many bits, a multiple of 8 from 8 to 4096. --hash says
		which function makes the codes, so that "search --picture" or "search --text" makes
		those of queries: pdq (256 bits), phash and dhash (64) of pictures, simhash (64) of
		texts.

		Before training, search compares vectors by the --metric of their modality: the cosine
		of the angle between them (the default), the inner product (dot), or the Euclidean
		distance (l2). If one encoder made the vectors of several modalities, as of pictures
		and texts, these share a space: --space-of image=text, or --shared for all. Then a text
		finds pictures without training. Such modalities have one number of dimensions and one
		metric. Alter changes both at any time.

		Fields are typed values beside the vectors. Filters can use all of them; :index makes
		filters by a field fast, and :words those that look into a text, such as CONTAINS.
		Alter adds modalities, fields and indexes of fields later.`, `
		fddhdb init wiki.db --modality image:128 --modality text:10
		fddhdb init news.db --modality image:512 --modality text:30000:sparse
		fddhdb init clip.db --modality image:512 --modality text:512 --shared
		fddhdb init wiki.db --collection hashes --codes 64 --field year:int:index
		fddhdb init photos.db --hash pdq --field album:string --field quality:int`).OnCollection()
	var declared flags.Schema
	declared.Register(v.Flags)
	return v.Does(func() error {
		schema, err := declared.Schema(v.Flags)
		if err != nil {
			return err
		}
		err = e.WithNew(v.Ctx, v.Dir, func(d api.Database) error {
			c, err := create(v, d, schema)
			if err == nil {
				schema, err = c.Schema(v.Ctx)
			}
			return err
		})
		if err != nil {
			return err
		}
		return v.Tell(forms.NewSchema(v.CollectionName, schema), "created collection %s in %s: %s", v.CollectionName,
			v.Dir, forms.DescribeSchema(schema))
	})
}

// create creates the collection that --collection names.
func create(v *run.Verb, d api.Database, schema db.Schema) (api.Collection, error) {
	c, err := d.CreateCollection(v.Ctx, v.CollectionName, schema)
	if errors.Is(err, db.ErrExists) {
		return nil, exit.Wrap(err, "name another one with --collection")
	}
	return c, err
}

func alterCommand(e *run.Env) *cobra.Command {
	v := e.NewVerb(run.GroupItems, "alter DIR (--add-modality NAME:DIM... | --add-field NAME:TYPE... | --index FIELD... | --index-words FIELD... | --metric NAME=METRIC... | --space-of NAME=OTHER... | --rename-label OLD=NEW)",
		"Add modalities and fields to a collection, index fields, change metrics or names of labels", `
		Alter adds to what the items of a collection may hold: modalities, in a learned
		collection, and fields. All are added in one commit, or none. What is there
		stays as it is: nothing can be taken away, and dimensions and types do not
		change.

		Items that are there lack what has been added: import --merge gives it to them
		(put replaces an item whole). Fields with :index or :words have an index from the start.
		A new modality counts for codes, and can be searched from, when a training has
		seen labelled items that have it; until then searches go on with the modalities
		that the model knows, and stats says which it does not.

		--index makes an index of a field that is there, so that --where by it reads no
		items. That takes some microseconds an item. If it is interrupted, the field is
		not indexed, and alter makes the index from the start; a field that has one
		keeps it. An index takes strings of up to 1,024 bytes: a longer one refuses it,
		with the key of the item. --index-words does the same with the words of a text,
		for CONTAINS, LIKE and ILIKE, of any length.

		--metric and --space-of say how search compares vectors before training, of
		modalities that are there or are being added: see init. A metric is that of all
		modalities that share the space. --space-of a=b has a, and all that share its
		space, share that of b; --space-of a= takes a out of its space. Codes, and what
		is stored, stay as they are.

		--rename-label gives a label another name: what a model knows of OLD holds for NEW.`, `
		fddhdb alter wiki.db --add-field year:int:index --add-field title:string
		fddhdb alter wiki.db --index year --index-words title
		fddhdb alter wiki.db --add-modality audio:512
		fddhdb alter wiki.db --metric audio=l2
		fddhdb alter wiki.db --rename-label art=arts
		fddhdb import wiki.db --merge --vectors audio=audio.npy --keys keys.txt
		fddhdb train wiki.db --activate`).OnCollection()
	var modalities flags.Modalities
	var fields flags.Fields
	var indexes, words []string
	var label string
	metrics := flags.Metrics{SpaceOf: flags.NamedList{Empty: true}}
	v.Flags.Var(&modalities, "add-modality",
		"a kind of vectors to add and its number of dimensions; repeat it for each")
	v.Flags.Var(&fields, "add-field",
		"a field to add and its type: string, int, float, bool or time; repeat it for each")
	v.Flags.StringArrayVar(&indexes, "index", nil, "a field to index; repeat it for each")
	v.Flags.StringArrayVar(&words, "index-words", nil, "a text field whose words to index; repeat it for each")
	metrics.Register(v.Flags)
	v.Flags.StringVar(&label, "rename-label", "", "give the label OLD the name NEW: `OLD=NEW`")
	return v.Does(func() error {
		alters := len(modalities.List)+len(fields.List)+len(indexes)+len(words) > 0 || metrics.Given()
		switch {
		case alters && v.Given("rename-label"):
			return exit.Usagef("--rename-label is a change of its own: leave out the other flags")
		case !alters && !v.Given("rename-label"):
			return exit.Usagef("alter needs --add-modality NAME:DIM or --add-field NAME:TYPE for what is to be added, --index or --index-words FIELD for what is to be indexed, or --metric, --space-of or --rename-label for what is to change")
		}
		return v.Change(func() error {
			if !alters {
				return renameLabel(v, label)
			}
			a := db.Alteration{AddModalities: modalities.List, AddFields: fields.List, IndexFields: indexes,
				IndexWords: words}
			metrics.Alter(&a)
			if err := v.Collection.Alter(v.Ctx, a); err != nil {
				return err
			}
			schema, err := v.Collection.Schema(v.Ctx)
			if err != nil {
				return err
			}
			stats, err := v.Collection.Stats(v.Ctx)
			if err != nil {
				return err
			}
			unknown := ""
			if stats.Trained && len(modalities.List) > 0 {
				var names []string
				for _, m := range modalities.List {
					names = append(names, m.Name)
				}
				unknown = fmt.Sprintf("\nthe model does not know %s: when labelled items have it, fddhdb train %s learns it",
					strings.Join(names, ", "), v.Dir)
			}
			return v.Tell(forms.NewSchema(v.Collection.Name(), schema), "altered collection %s in %s: %s%s", v.Collection.Name(),
				v.Dir, forms.DescribeSchema(schema), unknown)
		})
	})
}

func dropCommand(e *run.Env) *cobra.Command {
	v := e.NewVerb(run.GroupSpaces, "drop DIR (--space N | --collection NAME)", "Delete a space of codes, or a collection",
		`
		Drop --space N deletes a space of the collection: its codes, its model and its
		revisions, and not the items. It may be one that is being built; it cannot be
		the active one, as searches use that: activate another one first.

		Drop --collection NAME without --space deletes that collection, its items and
		all of its spaces. Nothing asks whether you mean it, and nothing brings it
		back. Either is done whole or not at all; compact then gives back the disk
		space at once.`, `
		fddhdb drop wiki.db --space 1
		fddhdb drop wiki.db --collection hashes`).OfSpace("the space to delete, by number `N`")
	v.OnAnyCollection("the collection `NAME` to delete, or with --space that the space is of (main)")
	return v.Does(func() error {
		if !v.Given("space") && !v.Given("collection") {
			return exit.Usagef("drop needs to know what: --space N, or --collection NAME for all of a collection")
		}
		return v.Change(func() error {
			if !v.Given("space") {
				n, err := v.Collection.Count(v.Ctx, "")
				if err == nil {
					err = v.DB.DropCollection(v.Ctx, v.Collection.Name())
				}
				if err != nil {
					return err
				}
				return v.Tell(map[string]any{"collection": v.Collection.Name(), "items": n}, "dropped collection %s with %s",
					v.Collection.Name(), term.Plural(n, "item", "items"))
			}
			if err := v.Collection.DropSpace(v.Ctx, v.Space); err != nil {
				return run.RightLine(err)
			}
			return v.Tell(map[string]any{"collection": v.Collection.Name(), "space": v.Space},
				"dropped space %d of collection %s", v.Space, v.Collection.Name())
		})
	})
}

func collectionsCommand(e *run.Env) *cobra.Command {
	v := e.NewVerb(run.GroupLook, "collections DIR", "List the collections", `
		Collections lists the collections of a database; with --json an object a line,
		with the figures that stats has. One that is index-only is a copy without
		vectors: it can be searched, and not written to.`, `
		fddhdb collections wiki.db`).PrintsLines()
	return v.Looks(func() error {
		s, err := v.DB.Stats(v.Ctx)
		if err != nil {
			return err
		}
		if err := forms.Measure(v.Ctx, v.DB, s); err != nil {
			return err
		}
		return run.List(v, s.Collections, func() {
			var rows [][]any
			for _, c := range s.Collections {
				var names []string
				for _, m := range c.Modalities {
					names = append(names, m.Name)
				}
				var bits any = term.NoCell
				if c.Trained {
					bits = c.Bits
				}
				modalities := term.TextCell(strings.Join(names, ", "))
				if c.IndexOnly {
					modalities = modalities.Remark(" (index-only)")
				}
				distinct := term.CountCell(c.DistinctCodes)
				if c.DistinctCodes == 0 && c.CodedItems > 0 { // a cluster does not know
					distinct = term.NoCell
				}
				rows = append(rows, []any{term.TextCell(c.Name), term.CountCell(c.Items),
					term.CountCell(c.Labels), bits, distinct, modalities})
			}
			e.PrintTable([]term.Column{term.Left("collection"), term.Right("items"), term.Right("labels"),
				term.Right("bits"), term.Right("distinct codes"), term.Left("modalities")}, rows)
		})
	})
}
