package command

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/flags"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/jsonform"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/textform"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db"
)

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
				a := db.Alteration{AddModalities: modalities.List, AddFields: fields.List, IndexFields: indexes}
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
				e.Printf("altered collection %s in %s: %s\n", c.Name(), args[0], textform.DescribeSchema(schema))
				return e.noteUnlearned(args[0], c, modalities.List)
			})
		},
	}
	o.register(cmd)
	cmd.Flags().Var(&modalities, "add-modality", "a kind of vectors to add and its number of dimensions; repeat it for each")
	cmd.Flags().Var(&fields, "add-field", "a field to add and its type: string, int, float, bool or time; repeat it for each")
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
	e.Printf("the model does not know %s: when labelled items have it, fddhdb train %s learns it\n", strings.Join(names, ", "), dir)
	return nil
}
