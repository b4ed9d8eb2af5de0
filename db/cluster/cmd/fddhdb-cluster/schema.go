package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/flags"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/forms"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster"
)

func initCommand(e *env) *cobra.Command {
	var declared flags.Schema
	cmd := &cobra.Command{
		Use:     "init COLLECTION (--modality NAME:DIM... | --codes BITS)",
		Short:   "Create a collection",
		GroupID: groupItems,
		Long: usage.Prose(`
			Init creates a collection on every shard.

			A learned collection has modalities: the kinds of feature vectors that its items
			have, each with its number of dimensions; :sparse stores only the numbers that
			are not 0. A model makes the codes: train learns one, and import --model brings in
			one that fddhdb or fddhdb-beam has trained. Before that, search compares vectors by
			the --metric of their modality: cosine, dot or l2. Modalities whose vectors one
			encoder has made share a space: --space-of image=text, or --shared for all.

			The items of a collection with --codes bring codes of that many bits, a multiple
			of 8 from 8 to 4096.

			Fields are typed values beside the vectors: string, int, float, bool or time.
			Filters find those with :index without reading items.

			A collection that is there with the same schema is left as it is.`),
		Example: usage.Example(`
			fddhdb-cluster init hashes --codes 64 --field year:int:index
			fddhdb-cluster init news --modality image:512 --modality text:30000:sparse
			fddhdb-cluster init clip --modality image:512 --modality text:512 --shared`),
		Args: arguments(1, 1, "the name of a collection"),
		RunE: func(cmd *cobra.Command, args []string) error {
			schema, err := declared.Schema(cmd.Flags())
			if err != nil {
				return err
			}
			return e.withClient(cmd.Context(), func(ctx context.Context, c *cluster.Client) error {
				coll, err := c.CreateCollection(ctx, args[0], schema)
				if errors.Is(err, db.ErrExists) {
					return exit.Failedf("there is a collection %s already, with another schema: fddhdb-cluster collections shows it", args[0])
				} else if err != nil {
					return err
				}
				stored, err := coll.Schema(ctx)
				if err != nil {
					return err
				}
				if e.json {
					return e.PrintJSON(forms.NewSchema(args[0], stored))
				}
				e.Printf("created collection %s in cluster %s: %s\n", args[0], e.link.cluster,
					forms.DescribeSchema(stored))
				return nil
			})
		},
	}
	f := cmd.Flags()
	f.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "bits" {
			name = "codes"
		}
		return pflag.NormalizedName(name)
	})
	declared.Register(f)
	f.Lookup("metric").Usage = "how vectors of a modality are compared before there is a model: cosine, dot or l2; repeat it for each"
	f.Lookup("codes").Usage += "; --bits is the same"
	fields := f.Lookup("field")
	fields.Value = fieldValue{fields.Value}
	return cmd
}

// A fieldValue is --field, which takes NAME:TYPE:indexed, too.
type fieldValue struct{ pflag.Value }

func (v fieldValue) Set(s string) error {
	if rest, is := strings.CutSuffix(s, ":indexed"); is {
		s = rest + ":index"
	}
	return v.Value.Set(s)
}

func dropCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:     "drop COLLECTION",
		Short:   "Delete a collection",
		GroupID: groupItems,
		Long: usage.Prose(`
			Drop deletes a collection, its items and its spaces, on every shard. Nothing asks
			whether you mean it, and nothing brings it back but a backup.`),
		Example: usage.Example(`fddhdb-cluster drop hashes`),
		Args:    arguments(1, 1, "the name of a collection"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.withClient(cmd.Context(), func(ctx context.Context, c *cluster.Client) error {
				if err := c.DropCollection(ctx, args[0]); err != nil {
					return e.noCollection(ctx, c, args[0], err)
				}
				if e.json {
					return e.PrintJSON(map[string]string{"collection": args[0]})
				}
				e.Printf("dropped collection %s\n", args[0])
				return nil
			})
		},
	}
}

// noCollection rewords the error of a missing collection: it names the existing ones.
func (e *env) noCollection(ctx context.Context, c *cluster.Client, name string, err error) error {
	if !errors.Is(err, db.ErrNotFound) {
		return err
	}
	names, look := c.Collections(ctx)
	if look != nil || slices.Contains(names, name) {
		return err
	}
	switch near := term.Nearest(name, names); {
	case near != "":
		return exit.Failedf("there is no collection %q in cluster %s: did you mean %s?", name, e.link.cluster,
			near)
	case len(names) == 0:
		return exit.Failedf("there is no collection %q in cluster %s, which has none: fddhdb-cluster init creates one", name, e.link.cluster)
	}
	return exit.Failedf("there is no collection %q in cluster %s: it has %s", name, e.link.cluster,
		strings.Join(names, ", "))
}

func collectionsCommand(e *env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "collections",
		Short:   "List the collections",
		GroupID: groupItems,
		Long: usage.Prose(`
			Collections lists the collections, with their items and what these may have; with
			--json an object a line, as init prints it, and the items.`),
		Example: usage.Example(`fddhdb-cluster collections`),
		Args:    arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return e.withClient(cmd.Context(), func(ctx context.Context, c *cluster.Client) error {
				names, err := c.Collections(ctx)
				if err != nil {
					return err
				}
				var rows [][]any
				for _, name := range names {
					s, err := c.Collection(name).Schema(ctx)
					if err != nil {
						return err
					}
					n, err := c.Collection(name).Count(ctx, "")
					if err != nil {
						return err
					}
					if e.json {
						form := forms.NewSchema(name, s)
						form.Items = &n
						if err := e.PrintJSON(form); err != nil {
							return err
						}
						continue
					}
					rows = append(rows, []any{term.TextCell(name), term.CountCell(n),
						forms.DescribeSchema(s)})
				}
				if !e.json {
					e.PrintTable([]term.Column{term.Left("collection"), term.Right("items"),
						term.Left("has")}, rows)
				}
				return nil
			})
		},
	}
	term.PrintsObjects(cmd)
	return cmd
}
