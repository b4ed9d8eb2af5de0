package command

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/textform"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db"
)

func facetsCommand(e *env) *cobra.Command {
	var o common
	var where whereFlag
	var by string
	var limit int
	cmd := &cobra.Command{
		Use:     "facets DIR --by FIELD",
		Short:   "Count the items by label, or by the values of a field",
		GroupID: groupLook,
		Long: usage.Prose(`
			Facets counts the items of each label, or of each value of a field, the most
			first; with --where of the items that match. An item counts for each of its
			labels. Items without a label, or without a value of the field, are counted
			last, as null. A field of the name label stands in double quotes.

			All counts are exact. They come from what filters read; without an index on the
			field all items that match are read. search --facets counts the items of an
			answer.`),
		Example: usage.Example(`
			fddhdb facets wiki.db --by label
			fddhdb facets wiki.db --by year --where "label = 'art'" --limit 10`),
		Args: dirArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case by == "":
				return exit.Usagef("--by is missing: label, or the name of a field")
			case cmd.Flags().Changed("limit") && limit < 1:
				return exit.Usagef("--limit %d: 1 or more values are possible", limit)
			}
			return e.lookAtCollection(args[0], &o, func(_ *db.DB, c *db.Collection) error {
				schema, err := c.Schema()
				if err != nil {
					return err
				}
				if err := checkFacet("--by", c, schema, by); err != nil {
					return err
				}
				facets, err := c.Facets(cmd.Context(), db.FacetQuery{By: by, Where: where.Expr, Limit: limit})
				if worded := where.wrap(err); err != nil {
					return worded
				}
				if o.json {
					for _, n := range textform.Counts(facets) {
						if err := e.PrintJSON(n); err != nil {
							return err
						}
					}
					return nil
				}
				textform.PrintValues(e.Printer, unquoted(by), facets)
				return nil
			})
		},
	}
	o.register(cmd)
	where.register(cmd)
	term.PrintsObjects(cmd)
	cmd.Flags().StringVar(&by, "by", "", "what to count by: label, or a `FIELD`")
	cmd.Flags().IntVar(&limit, "limit", 0, "print the `N` values of the most items (default: all)")
	return cmd
}

// checkFacet checks what a flag names to count by.
func checkFacet(flag string, c *db.Collection, schema db.Schema, by string) error {
	names := []string{"label"}
	for _, f := range schema.Fields {
		name := f.Name
		if strings.EqualFold(name, "label") {
			name = `"` + name + `"`
		}
		names = append(names, name)
	}
	if strings.EqualFold(by, "label") || slices.ContainsFunc(schema.Fields, func(f db.Field) bool { return f.Name == unquoted(by) }) {
		return nil
	}
	near := term.Nearest(by, names)
	if near != "" {
		near = "; did you mean " + near + "?"
	}
	return exit.Usagef("%s %s: of collection %s these are possible: %s%s", flag, term.Plain(by), c.Name(), strings.Join(names, ", "), near)
}

// unquoted returns a name without the double quotes around it, if it has both.
func unquoted(name string) string {
	if inner, ok := strings.CutPrefix(name, `"`); ok {
		if inner, ok = strings.CutSuffix(inner, `"`); ok {
			return inner
		}
	}
	return name
}
