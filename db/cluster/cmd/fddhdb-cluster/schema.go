package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/flags"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/textform"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster"
)

func initCommand(e *env) *cobra.Command {
	var modalities modalityList
	var fields fieldList
	metrics, spaceOf := flags.NamedList{Kind: "NAME=METRIC"}, flags.NamedList{Kind: "NAME=OTHER"}
	var bits int
	var shared bool
	cmd := &cobra.Command{
		Use:     "init COLLECTION (--modality NAME:DIM... | --codes BITS)",
		Short:   "Create a collection",
		GroupID: groupItems,
		Long: prose(`
			Init creates a collection on every shard.

			A learned collection has modalities: the kinds of feature vectors that its items
			have, each with its number of dimensions; :sparse stores only the numbers that
			are not 0. A model makes the codes: import COLLECTION --model brings in one that
			fddhdb or fddhdb-beam has trained. Before that, search compares vectors by the
			--metric of their modality: cosine, dot or l2. Modalities whose vectors one
			encoder has made share a space: --space-of image=text, or --shared for all.

			The items of a collection with --codes bring codes of that many bits, a multiple
			of 8 from 8 to 4096.

			Fields are typed values beside the vectors: string, int, float, bool or time.
			Filters find those with :index without reading items.

			A collection that is there with the same schema is left as it is.`),
		Example: example(`
			fddhdb-cluster init hashes --codes 64 --field year:int:index
			fddhdb-cluster init news --modality image:512 --modality text:30000:sparse
			fddhdb-cluster init clip --modality image:512 --modality text:512 --shared`),
		Args: arguments(1, 1, "the name of a collection"),
		RunE: func(cmd *cobra.Command, args []string) error {
			schema := db.Schema{Modalities: modalities.list, Bits: bits, Fields: fields.list}
			given := cmd.Flags().Changed("codes")
			switch {
			case given && len(schema.Modalities) > 0:
				return exit.Usagef("--modality and --codes: a collection either learns its codes or is given them")
			case given && (shared || len(metrics.List)+len(spaceOf.List) > 0):
				return exit.Usagef("--metric, --space-of and --shared are of modalities, and with --codes there are none")
			case shared && len(spaceOf.List) > 0:
				return exit.Usagef("--shared is of all modalities: leave out --space-of")
			case given:
				if err := flags.CheckBits("--codes", bits); err != nil {
					return err
				}
			case len(schema.Modalities) == 0:
				return exit.Usagef("init needs --modality NAME:DIM for each kind of vectors, or --codes BITS")
			}
			err := eachModality(schema.Modalities, "--metric", metrics.List, func(m *db.Modality, v string) { m.Metric = db.Metric(v) })
			if err == nil {
				err = eachModality(schema.Modalities, "--space-of", spaceOf.List, func(m *db.Modality, v string) { m.SpaceOf = v })
			}
			if err != nil {
				return err
			}
			for i := 1; shared && i < len(schema.Modalities); i++ {
				schema.Modalities[i].SpaceOf = schema.Modalities[0].Name
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
					return e.PrintJSON(newSchemaJSON(args[0], stored))
				}
				e.Printf("created collection %s in cluster %s: %s\n", args[0], e.link.cluster, textform.DescribeSchema(stored))
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
	f.Var(&modalities, "modality", "a kind of vectors and its number of dimensions; repeat it for each")
	f.Var(&metrics, "metric", "how vectors of a modality are compared before there is a model: cosine, dot or l2; repeat it for each")
	f.Var(&spaceOf, "space-of", "a modality, and another that shares its space; repeat it for each")
	f.BoolVar(&shared, "shared", false, "all modalities share one space")
	f.IntVar(&bits, "codes", 0, "items bring codes of so many `BITS`; --bits is the same")
	f.Var(&fields, "field", "a field and its type: string, int, float, bool or time; repeat it for each")
	return cmd
}

// eachModality calls set with the modality that a value of a flag names.
func eachModality(all []db.Modality, flag string, given []flags.Named, set func(m *db.Modality, value string)) error {
	for _, n := range given {
		i := slices.IndexFunc(all, func(m db.Modality) bool { return m.Name == n.Name })
		if i < 0 {
			return exit.Usagef("%s %s=%s: there is no --modality %s", flag, n.Name, n.Value, n.Name)
		}
		set(&all[i], n.Value)
	}
	return nil
}

// A schemaJSON is a collection as fddhdb init --json prints it.
type schemaJSON struct {
	Collection string        `json:"collection"`
	Modalities []db.Modality `json:"modalities"`
	Bits       *int          `json:"bits"` // null: the model decides
	Fields     []db.Field    `json:"fields"`
	Items      *int          `json:"items,omitempty"` // of collections alone
}

func newSchemaJSON(collection string, s db.Schema) schemaJSON {
	out := schemaJSON{Collection: collection, Modalities: append([]db.Modality{}, s.Modalities...), Fields: append([]db.Field{}, s.Fields...)}
	if s.Bits > 0 {
		out.Bits = &s.Bits
	}
	return out
}

// A modalityList is the value of --modality.
type modalityList struct{ list []db.Modality }

func (l *modalityList) String() string { return "" }
func (l *modalityList) Type() string   { return "NAME:DIM[:sparse]" }

func (l *modalityList) Set(s string) error {
	name, rest, _ := strings.Cut(s, ":")
	rest, kind, hasKind := strings.Cut(rest, ":")
	dim, err := strconv.Atoi(rest)
	switch {
	case name == "" || rest == "":
		return errors.New("NAME:DIM is expected, such as image:128")
	case err != nil || dim < 1 || dim > db.MaxDim:
		return fmt.Errorf("%q is no number of dimensions: 1 to %d are possible", rest, db.MaxDim)
	case hasKind && kind != "sparse":
		return fmt.Errorf("unknown kind %q: NAME:DIM or NAME:DIM:sparse is expected", kind)
	}
	l.list = append(l.list, db.Modality{Name: name, Dim: dim, Sparse: hasKind})
	return nil
}

// A fieldList is the value of --field.
type fieldList struct{ list []db.Field }

func (l *fieldList) String() string { return "" }
func (l *fieldList) Type() string   { return "NAME:TYPE[:index]" }

func (l *fieldList) Set(s string) error {
	if rest, is := strings.CutSuffix(s, ":indexed"); is {
		s = rest + ":index"
	}
	f, err := textform.ParseField(s)
	if err != nil {
		return err
	}
	l.list = append(l.list, f)
	return nil
}

func dropCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:     "drop COLLECTION",
		Short:   "Delete a collection",
		GroupID: groupItems,
		Long: prose(`
			Drop deletes a collection, its items and its spaces, on every shard. Nothing asks
			whether you mean it, and nothing brings it back but a backup.`),
		Example: example(`fddhdb-cluster drop hashes`),
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

// noCollection rewords the error of a collection that is not there: it says which are.
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
		return exit.Failedf("there is no collection %q in cluster %s: did you mean %s?", name, e.link.cluster, near)
	case len(names) == 0:
		return exit.Failedf("there is no collection %q in cluster %s, which has none: fddhdb-cluster init creates one", name, e.link.cluster)
	}
	return exit.Failedf("there is no collection %q in cluster %s: it has %s", name, e.link.cluster, strings.Join(names, ", "))
}

func collectionsCommand(e *env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "collections",
		Short:   "List the collections",
		GroupID: groupItems,
		Long: prose(`
			Collections lists the collections, with their items and what these may have; with
			--json an object a line, as init prints it, and the items.`),
		Example: example(`fddhdb-cluster collections`),
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
						form := newSchemaJSON(name, s)
						form.Items = &n
						if err := e.PrintJSON(form); err != nil {
							return err
						}
						continue
					}
					rows = append(rows, []any{term.TextCell(name), term.CountCell(n), textform.DescribeSchema(s)})
				}
				if !e.json {
					e.PrintTable([]term.Column{term.Left("collection"), term.Right("items"), term.Left("has")}, rows)
				}
				return nil
			})
		},
	}
	term.PrintsObjects(cmd)
	return cmd
}
