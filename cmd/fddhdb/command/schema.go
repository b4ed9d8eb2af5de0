package command

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/flags"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/jsonform"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/textform"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db"
)

func initCommand(e *env) *cobra.Command {
	var o common
	var declared flags.Schema
	cmd := &cobra.Command{
		Use:     "init DIR (--modality NAME:DIM... | --codes BITS)",
		Short:   "Create a database or a further collection",
		GroupID: groupItems,
		Long: usage.Prose(`
			Init creates a database in the folder DIR, with one collection. On a database
			that exists it creates a further collection, which --collection names.

			A learned collection has modalities: the kinds of feature vectors that its items
			have, each with its number of dimensions. Training makes the codes. A modality with
			:sparse, such as bags of words, stores and computes only the numbers that are not 0;
			the codes are the same. A collection with --codes has no modalities and no training:
			its items bring codes of that many bits, a multiple of 8 from 8 to 4096.

			Before training, search compares vectors by the --metric of their modality: the cosine
			of the angle between them (the default), the inner product (dot), or the Euclidean
			distance (l2). If one encoder made the vectors of several modalities, as of pictures
			and texts, these share a space: --space-of image=text, or --shared for all. Then a text
			finds pictures without training. Such modalities have one number of dimensions and one
			metric. Alter changes both at any time.

			Fields are typed values beside the vectors. Filters can use all of them; :index makes
			filters by a field fast. Alter adds modalities, fields and indexes of fields later.`),
		Example: usage.Example(`
			fddhdb init wiki.db --modality image:128 --modality text:10
			fddhdb init news.db --modality image:512 --modality text:30000:sparse
			fddhdb init clip.db --modality image:512 --modality text:512 --shared
			fddhdb init wiki.db --collection hashes --codes 64 --field year:int:index`),
		Args: dirArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			schema, err := declared.Schema(cmd.Flags())
			if err != nil {
				return err
			}
			var stored db.Schema
			err = e.withNew(args[0], func(d *db.DB) error {
				c, err := createCollection(cmd, d, o.collection, schema)
				if err == nil {
					stored, err = c.Schema()
				}
				return err
			})
			if err != nil {
				return err
			}
			if o.json {
				return e.PrintJSON(jsonform.NewSchema(o.collection, stored))
			}
			e.Printf("created collection %s in %s: %s\n", o.collection, args[0],
				textform.DescribeSchema(stored))
			return nil
		},
	}
	o.register(cmd)
	declared.Register(cmd.Flags())
	return cmd
}

// createCollection creates a collection for a verb.
func createCollection(cmd *cobra.Command, d *db.DB, name string, schema db.Schema) (*db.Collection, error) {
	c, err := d.CreateCollection(cmd.Context(), name, schema)
	if errors.Is(err, db.ErrExists) {
		return nil, exit.Wrap(err, "name another one with --collection")
	}
	return c, err
}

func alterCommand(e *env) *cobra.Command {
	var o common
	var modalities flags.Modalities
	var fields flags.Fields
	var indexes []string
	var metrics flags.Metrics
	cmd := &cobra.Command{
		Use:     "alter DIR (--add-modality NAME:DIM... | --add-field NAME:TYPE... | --index FIELD... | --metric NAME=METRIC... | --space-of NAME=OTHER...)",
		Short:   "Add modalities and fields to a collection, index fields, or change metrics",
		GroupID: groupItems,
		Long: usage.Prose(`
			Alter adds to what the items of a collection may hold: modalities, in a learned
			collection, and fields. All are added in one commit, or none. What is there
			stays as it is: nothing can be taken away, and dimensions and types do not
			change.

			Items that are there lack what has been added: import --merge gives it to them
			(put replaces an item whole). Fields with :index have an index from the start.
			A new modality counts for codes, and can be searched from, when a training has
			seen labelled items that have it; until then searches go on with the modalities
			that the model knows, and stats says which it does not.

			--index makes an index of a field that is there, so that --where by it reads no
			items. That takes some microseconds an item. If it is interrupted, the field is
			not indexed, and alter makes the index from the start; a field that has one
			keeps it. An index takes strings of up to 1,024 bytes: a longer one refuses it,
			with the key of the item.

			--metric and --space-of say how search compares vectors before training, of
			modalities that are there or are being added: see init. A metric is that of all
			modalities that share the space. --space-of a=b has a, and all that share its
			space, share that of b; --space-of a= takes a out of its space. Codes, and what
			is stored, stay as they are.`),
		Example: usage.Example(`
			fddhdb alter wiki.db --add-field year:int:index --add-field title:string
			fddhdb alter wiki.db --index title --index year
			fddhdb alter wiki.db --add-modality audio:512
			fddhdb alter wiki.db --metric audio=l2
			fddhdb import wiki.db --merge --vectors audio=audio.npy --keys keys.txt
			fddhdb train wiki.db --activate`),
		Args: dirArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(modalities.List)+len(fields.List)+len(indexes) == 0 && !metrics.Given() {
				return exit.Usagef("alter needs --add-modality NAME:DIM or --add-field NAME:TYPE for what is to be added, --index FIELD for what is to be indexed, or --metric or --space-of for what is to change")
			}
			return e.withCollection(args[0], &o, func(_ *db.DB, c *db.Collection) error {
				a := db.Alteration{AddModalities: modalities.List, AddFields: fields.List,
					IndexFields: indexes}
				metrics.Alter(&a)
				if err := c.Alter(cmd.Context(), a); err != nil {
					return err
				}
				schema, err := c.Schema()
				if err != nil {
					return err
				}
				if o.json {
					return e.PrintJSON(jsonform.NewSchema(c.Name(), schema))
				}
				e.Printf("altered collection %s in %s: %s\n", c.Name(), args[0],
					textform.DescribeSchema(schema))
				return e.noteUnlearned(args[0], c, modalities.List)
			})
		},
	}
	o.register(cmd)
	cmd.Flags().Var(&modalities, "add-modality",
		"a kind of vectors to add and its number of dimensions; repeat it for each")
	cmd.Flags().Var(&fields, "add-field",
		"a field to add and its type: string, int, float, bool or time; repeat it for each")
	cmd.Flags().StringArrayVar(&indexes, "index", nil, "a field to index; repeat it for each")
	metrics.Register(cmd.Flags())
	metrics.SpaceOf.Empty = true
	return cmd
}

// noteUnlearned prints a note that the model of a trained collection does not know the
// added modalities.
func (e *env) noteUnlearned(dir string, c *db.Collection, added []db.Modality) error {
	s, err := c.Stats()
	if err != nil || !s.Trained || len(added) == 0 {
		return err
	}
	var names []string
	for _, m := range added {
		names = append(names, m.Name)
	}
	e.Printf("the model does not know %s: when labelled items have it, fddhdb train %s learns it\n",
		strings.Join(names, ", "), dir)
	return nil
}

func dropCommand(e *env) *cobra.Command {
	var o common
	var space spaceFlag
	cmd := &cobra.Command{
		Use:     "drop DIR (--space N | --collection NAME)",
		Short:   "Delete a space of codes, or a collection",
		GroupID: groupSpaces,
		Long: usage.Prose(`
			Drop --space N deletes a space of the collection: its codes, its model and its
			revisions, and not the items. It may be one that is being built; it cannot be
			the active one, as searches use that: activate another one first.

			Drop --collection NAME without --space deletes that collection, its items and
			all of its spaces. Nothing asks whether you mean it, and nothing brings it
			back. Either is done whole or not at all; compact then gives back the disk
			space at once.`),
		Example: usage.Example(`
			fddhdb drop wiki.db --space 1
			fddhdb drop wiki.db --collection hashes`),
		Args: dirArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !space.given() && !cmd.Flags().Changed("collection") {
				return exit.Usagef("drop needs to know what: --space N, or --collection NAME for all of a collection")
			}
			return e.withCollection(args[0], &o, func(d *db.DB, c *db.Collection) error {
				if !space.given() {
					n, err := c.Count(cmd.Context(), "")
					if err == nil {
						err = d.DropCollection(cmd.Context(), c.Name())
					}
					if err != nil {
						return err
					}
					if o.json {
						return e.PrintJSON(droppedJSON{Collection: c.Name(), Items: &n})
					}
					e.Printf("dropped collection %s with %s\n", c.Name(), term.Plural(n, "item", "items"))
					return nil
				}
				if err := space.check(c); err != nil {
					return err
				}
				if err := c.DropSpace(cmd.Context(), space.n); errors.Is(err, db.ErrInvalid) {
					return exit.Failedf("%w", err) // the command line is right; the space is the active one
				} else if err != nil {
					return err
				}
				if o.json {
					return e.PrintJSON(droppedJSON{Collection: c.Name(), Space: space.n})
				}
				e.Printf("dropped space %d of collection %s\n", space.n, c.Name())
				return nil
			})
		},
	}
	o.register(cmd)
	cmd.Flags().Lookup("collection").Usage = "the collection `NAME` to delete, or with --space that the space is of (main)"
	cmd.Flags().Lookup("collection").DefValue = ""
	space.register(cmd, "the space to delete, by number `N`")
	return cmd
}

// droppedJSON is the --json form of drop.
type droppedJSON struct {
	Collection string   `json:"collection"`
	Space      db.Space `json:"space,omitempty"` // absent: the whole collection
	Items      *int     `json:"items,omitempty"` // items that it had
}

func collectionsCommand(e *env) *cobra.Command {
	var o common
	cmd := &cobra.Command{
		Use:     "collections DIR",
		Short:   "List the collections",
		GroupID: groupLook,
		Long: usage.Prose(`
			Collections lists the collections of a database; with --json an object a line,
			with the figures that stats has. One that is index-only is a copy without
			vectors: it can be searched, and not written to.`),
		Example: usage.Example(`
			fddhdb collections wiki.db`),
		Args: dirArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.lookAt(args[0], func(d *db.DB) error {
				s, err := d.Stats()
				if err != nil {
					return err
				}
				if o.json {
					form, err := jsonform.NewStats(cmd.Context(), d, s)
					if err != nil {
						return err
					}
					for _, c := range form.Collections {
						if err := e.PrintJSON(c); err != nil {
							return err
						}
					}
					return nil
				}
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
					rows = append(rows, []any{term.TextCell(c.Name), term.CountCell(c.Items),
						term.CountCell(c.Labels), bits,
						term.CountCell(c.DistinctCodes), modalities})
				}
				e.PrintTable([]term.Column{term.Left("collection"), term.Right("items"), term.Right("labels"),
					term.Right("bits"), term.Right("distinct codes"), term.Left("modalities")}, rows)
				return nil
			})
		},
	}
	o.registerJSON(cmd)
	term.PrintsObjects(cmd)
	return cmd
}
