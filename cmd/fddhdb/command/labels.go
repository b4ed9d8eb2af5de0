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
	var rename, merge string
	cmd := &cobra.Command{
		Use:     "labels DIR [--rename OLD=NEW | --merge A=B]",
		Short:   "List, rename and merge labels",
		GroupID: groupItems,
		Long: usage.Prose(`
			Labels lists the labels that items have, with the number of items of each, the
			most frequent first; with --where of the items that match. A label that no item
			has any more is not listed, nor exported, until an item brings it again.

			--rename OLD=NEW gives a label another name. Items, codes and models stay as they
			are: what a model knows of OLD holds for NEW.

			--merge A=B gives all items that have A the label B in its place, so that nothing
			has A any more. That is one commit, and cannot be undone: nothing tells which
			items had A. Items whose labels a model knows then get other codes, and teach
			anew with the next update. If the model knows A and not B, merge B=A, then rename:
			or update --grow-labels lets it learn B.

			Where a label has a = in its name, the name that items have counts.`),
		Example: usage.Example(`
			fddhdb labels wiki.db
			fddhdb labels wiki.db --where "has(image)" --limit 5
			fddhdb labels wiki.db --rename art=arts
			fddhdb labels wiki.db --merge arts=music`),
		Args: dirArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			f := cmd.Flags()
			change := "rename"
			if f.Changed("merge") {
				change = "merge"
			}
			pair := rename + merge
			switch {
			case f.Changed("rename") && f.Changed("merge"):
				return exit.Usagef("labels takes one of --rename and --merge, not both")
			case f.Changed(change) && (where.Given() || f.Changed("limit")):
				return exit.Usagef("--%s is about all items that have the label: leave out --where and --limit", change)
			case f.Changed(change) && !strings.Contains(pair, "="):
				return exit.Usagef("--%s %q: two labels are expected, with = between them", change, pair)
			case f.Changed("limit") && limit < 1:
				return exit.Usagef("--limit %d: 1 or more labels are possible", limit)
			case f.Changed("rename"):
				return e.withCollection(args[0], &o, func(_ *db.DB, c *db.Collection) error { return e.renameLabel(cmd.Context(), c, &o, pair) })
			case f.Changed("merge"):
				return e.withCollection(args[0], &o, func(_ *db.DB, c *db.Collection) error { return e.mergeLabel(cmd.Context(), c, &o, pair) })
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
	f.StringVar(&merge, "merge", "", "give the items of label A the label B in its place: `A=B`")
	return cmd
}

// labelJSON is a line of labels --json.
type labelJSON struct {
	Label string `json:"label"`
	Items int    `json:"items"`
}

func (e *env) renameLabel(ctx context.Context, c *db.Collection, o *common, pair string) error {
	old, name, err := splitLabels(c, "--rename", pair)
	if err == nil {
		err = c.RenameLabel(ctx, old, name)
	}
	switch {
	case errors.Is(err, db.ErrExists):
		return exit.Failedf("collection %s has items of a label %s already: --merge %s makes one of both", c.Name(), term.Plain(name), term.Plain(pair))
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

func (e *env) mergeLabel(ctx context.Context, c *db.Collection, o *common, pair string) error {
	from, into, err := splitLabels(c, "--merge", pair)
	if err != nil {
		return err
	}
	n, err := c.MergeLabel(ctx, from, into)
	switch {
	case errors.Is(err, db.ErrNotFound):
		return exit.Failedf("%w: --rename %s gives %s another name", err, term.Plain(pair), term.Plain(from))
	case err != nil:
		return err
	case o.json:
		return e.PrintJSON(struct {
			Merged string `json:"merged"`
			labelJSON
		}{from, labelJSON{into, n}})
	}
	e.Printf("merged label %s into %s: %s\n", term.Plain(from), term.Plain(into), term.Plural(n, "item", "items"))
	return nil
}

// splitLabels splits A=B where A is a label that items have. Either may have = in it.
func splitLabels(c *db.Collection, flag, pair string) (a, b string, err error) {
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
		return "", "", exit.Failedf("%s: no item of collection %s has the label %s%s", flag, c.Name(), term.Plain(a), near)
	case found > 1:
		return "", "", exit.Usagef("%s %q: there are several labels that it may begin with: a program can say which, by RenameLabel or MergeLabel", flag, pair)
	}
	return a, b, nil
}
