package command

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/textform"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db"
)

func labelsCommand(e *env) *cobra.Command {
	var o common
	var where whereFlag
	var limit int
	var rename string
	cmd := &cobra.Command{
		Use:     "labels DIR [--rename OLD=NEW]",
		Short:   "List and rename labels",
		GroupID: groupItems,
		Long: usage.Prose(`
			Labels lists the labels that items have, with the number of items of each, the
			most frequent first; with --where of the items that match. A label that no item
			has any more is not listed, nor exported, until an item brings it again.

			--rename OLD=NEW gives a label another name. Items, codes and models stay as they
			are: what a model knows of OLD holds for NEW.

			If a label has a = in its name, the name that items have counts.`),
		Example: usage.Example(`
			fddhdb labels wiki.db
			fddhdb labels wiki.db --where "has(image)" --limit 5
			fddhdb labels wiki.db --rename art=arts`),
		Args: dirArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			f := cmd.Flags()
			switch {
			case f.Changed("rename") && (where.Given() || f.Changed("limit")):
				return exit.Usagef("--rename is about all items that have the label: leave out --where and --limit")
			case f.Changed("rename") && !strings.Contains(rename, "="):
				return exit.Usagef("--rename %q: two labels are expected, with = between them", rename)
			case f.Changed("limit") && limit < 1:
				return exit.Usagef("--limit %d: 1 or more labels are possible", limit)
			case f.Changed("rename"):
				return e.withCollection(args[0], &o, func(_ *db.DB, c *db.Collection) error { return e.renameLabel(cmd.Context(), c, &o, rename) })
			}
			return e.lookAtCollection(args[0], &o, func(_ *db.DB, c *db.Collection) error {
				facets, err := c.Facets(cmd.Context(), db.FacetQuery{By: "label", Where: where.Expr, Limit: limit})
				if err != nil {
					return where.wrap(err)
				}
				if o.json {
					for _, n := range facets.Counts {
						if err := e.PrintJSON(labelJSON{n.Value.(string), n.Items}); err != nil {
							return err
						}
					}
					return nil
				}
				textform.PrintLabels(e.Printer, facets)
				return nil
			})
		},
	}
	o.register(cmd)
	where.register(cmd)
	term.PrintsObjects(cmd)
	f := cmd.Flags()
	f.IntVar(&limit, "limit", 0, "list the `N` most frequent labels (default: all)")
	f.StringVar(&rename, "rename", "", "give the label OLD the name NEW: `OLD=NEW`")
	return cmd
}

// labelJSON is a line of labels --json.
type labelJSON struct {
	Label string `json:"label"`
	Items int    `json:"items"`
}

func (e *env) renameLabel(ctx context.Context, c *db.Collection, o *common, pair string) error {
	old, name, err := splitLabels(c, pair)
	if err == nil {
		err = c.RenameLabel(ctx, old, name)
	}
	switch {
	case errors.Is(err, db.ErrExists):
		return exit.Failedf("collection %s has items of a label %s already: to make one label of both, export the items of one, change the label there, and import them", c.Name(), term.Plain(name))
	case err != nil:
		return err
	case o.json:
		return e.PrintJSON(struct {
			Renamed string `json:"renamed"`
			Label   string `json:"label"`
		}{old, name})
	}
	e.Printf("renamed label %s to %s\n", term.Plain(old), term.Plain(name))
	return nil
}

// splitLabels splits A=B where A is a label that items have. Either may have = in it.
func splitLabels(c *db.Collection, pair string) (a, b string, err error) {
	labels, err := c.Labels()
	if err != nil {
		return "", "", err
	}
	found := 0
	for i := range len(pair) {
		if pair[i] == '=' && slices.Contains(labels, pair[:i]) {
			a, b = pair[:i], pair[i+1:]
			found++
		}
	}
	switch {
	case found == 0:
		a, _, _ = strings.Cut(pair, "=")
		near := term.Nearest(a, labels)
		if near != "" {
			near = ": did you mean " + term.Plain(near) + "?"
		}
		return "", "", exit.Failedf("--rename: no item of collection %s has the label %s%s", c.Name(), term.Plain(a), near)
	case found > 1:
		return "", "", exit.Usagef("--rename %q: there are several labels that it may begin with: a program can say which, by RenameLabel", pair)
	}
	return a, b, nil
}
