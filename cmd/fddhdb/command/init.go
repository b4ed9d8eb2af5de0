package command

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/flags"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/jsonform"
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
			e.Printf("created collection %s in %s: %s\n", o.collection, args[0], textform.DescribeSchema(stored))
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
