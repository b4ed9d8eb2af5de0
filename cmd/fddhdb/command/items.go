package command

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/flags"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/source"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/textform"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db"
)

func putCommand(e *env) *cobra.Command {
	var o common
	vectors := flags.NamedList{Kind: "NAME=v,v,...|NAME=i:v,..."}
	fields := flags.NamedList{Kind: "NAME=VALUE", Empty: true}
	var labels, code, payload string
	cmd := &cobra.Command{
		Use:     "put DIR KEY",
		Short:   "Store one item",
		GroupID: groupItems,
		Long: usage.Prose(`
			Put stores an item under a key, replacing the one that is there, and prints it
			as it is stored: in a trained collection with its code. It comes from the
			labels if the model knows one of them, else from the vectors.

			A vector is its numbers, v,v,..., or those that are not 0, each behind its
			dimension, counted from 0: i:v,i:v,..., and : if there are none. Either goes
			where the modality is of the other form.`),
		Example: usage.Example(`
			fddhdb put wiki.db cat.jpg --vector text=.1,.1,.2,0,0,.1,.1,.1,.2,.1 --labels 3,7
			fddhdb put news.db story --vector text=3:1.5,17:2
			fddhdb put hashes.db cat.jpg --code 9f3c01d2aa55e870 --field year=2024`),
		Args: dirAndKeys(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			item := source.NewRow()
			item.Key, item.Labels = args[1], flags.SplitList(labels)
			if payload != "" {
				item.Payload = []byte(payload)
			}
			for _, v := range vectors.List {
				if err := setVector(&item, v.Name, v.Value); err != nil {
					return exit.Usagef("--vector %s: %w", v.Name, err)
				}
			}
			if code != "" {
				var err error
				if item.Code, err = hex.DecodeString(code); err != nil {
					return exit.Usagef("--code %q: not hexadecimal: two digits a byte are expected", code)
				}
			}
			return e.withCollection(args[0], &o, func(_ *db.DB, c *db.Collection) error {
				schema, err := c.Schema()
				if err != nil {
					return err
				}
				if item.Code != nil && schema.Bits == 0 {
					return exit.Usagef("--code: collection %q makes its codes itself", c.Name())
				}
				if item.Code == nil && schema.Bits > 0 {
					return exit.Usagef("--code HEX is missing: the items of collection %q bring their codes, of %d bits", c.Name(), schema.Bits)
				}
				for _, v := range vectors.List {
					if _, err := source.FindModality(c.Name(), schema, "--vector", v.Name); err != nil {
						return err
					}
				}
				if item.Fields, err = fieldValues(schema, fields.List); err != nil {
					return err
				}
				key, err := c.Put(cmd.Context(), &item)
				if err != nil {
					return err
				}
				stored, err := c.Get(cmd.Context(), key)
				if err != nil {
					return err
				}
				show, end, err := e.wholeItemPrinter(c, o.json)
				if err != nil {
					return err
				}
				defer end()
				return show(stored)
			})
		},
	}
	o.register(cmd)
	f := cmd.Flags()
	f.Var(&vectors, "vector", "the vector of a modality; repeat it for each")
	f.StringVar(&labels, "labels", "", "labels, `a,b,...`")
	f.Var(&fields, "field", "the value of a field; repeat it for each")
	f.StringVar(&code, "code", "", "the code as `HEX`, in a collection that is given its codes")
	f.StringVar(&payload, "payload", "", "bytes to keep with the item, as `TEXT`")
	return cmd
}

// setVector adds a vector to an item.
func setVector(item *db.Item, name, value string) error {
	x, err := source.ParseVector(value)
	if x.Sparse != nil {
		item.Sparse[name] = *x.Sparse
	} else {
		item.Vectors[name] = x.Dense
	}
	return err
}

// fieldValues parses NAME=VALUE by the declared types of the fields.
func fieldValues(s db.Schema, given []flags.Named) (map[string]any, error) {
	types := map[string]db.FieldType{}
	var names []string
	for _, f := range s.Fields {
		types[f.Name] = f.Type
		names = append(names, f.Name)
	}
	values := map[string]any{}
	for _, g := range given {
		typ, ok := types[g.Name]
		if !ok {
			hint := "the collection has none"
			if len(names) > 0 {
				hint = "there is " + strings.Join(names, ", ")
			}
			return nil, exit.Usagef("--field: there is no field %q: %s", g.Name, hint)
		}
		v, err := source.ParseValue(typ, g.Value)
		if err != nil {
			return nil, exit.Usagef("--field %s: %w", g.Name, err)
		}
		values[g.Name] = v
	}
	return values, nil
}

// printItemJSON prints an item with everything that it has.
func (e *env) printItemJSON(it *db.Item) error {
	if err := e.PrintJSON(it); err != nil {
		return fmt.Errorf("item %q: %w", it.Key, err)
	}
	return nil
}

func getCommand(e *env) *cobra.Command {
	var o common
	cmd := &cobra.Command{
		Use:     "get DIR KEY...",
		Short:   "Print items by their keys",
		GroupID: groupItems,
		Long: usage.Prose(`
			Get prints the items with these keys, with --json one a line and with all
			their vectors. The code is that of the active space, or with --space N of that
			one, in hexadecimal; code_from says what it was made from: labels, fused (its
			vectors), a modality (its vector of that alone), or given.

			If a key has no item, the others are printed, and the exit code is 1. A key that
			begins with - stands behind --, here and with put and delete.`),
		Example: usage.Example(`
			fddhdb get wiki.db 0 1 2
			fddhdb get wiki.db 0 --json
			fddhdb get wiki.db -- -k`),
		Args: dirAndKeys(1, 0),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.lookAtCollection(args[0], &o, func(_ *db.DB, c *db.Collection) error {
				show, end, err := e.wholeItemPrinter(c, o.json)
				if err != nil {
					return err
				}
				defer end()
				var missing []string
				for _, key := range args[1:] {
					it, err := c.Get(cmd.Context(), key)
					if errors.Is(err, db.ErrNotFound) {
						missing = append(missing, key)
						continue
					}
					if err == nil {
						err = show(it)
					}
					if err != nil {
						return err
					}
				}
				if len(missing) > 0 {
					return exit.Failedf("not found in collection %q: %s", c.Name(),
						strings.Join(missing, ", "))
				}
				return nil
			})
		},
	}
	o.register(cmd)
	o.registerSpace(cmd)
	term.PrintsObjects(cmd)
	return cmd
}

func deleteCommand(e *env) *cobra.Command {
	var o common
	var where whereFlag
	cmd := &cobra.Command{
		Use:     "delete DIR (KEY... | --where EXPR)",
		Short:   "Delete items by their keys or by what they are",
		GroupID: groupItems,
		Long: usage.Prose(`
			Delete deletes the items with these keys, or all that match --where, in one
			commit, and says how many there were. A key without an item is no error. Count
			with the same --where says beforehand how many there are.`),
		Example: usage.Example(`
			fddhdb delete wiki.db 17 18
			fddhdb delete shop.db --where "sold = true AND year <= 2020"`),
		Args: func(cmd *cobra.Command, args []string) error {
			if !where.Given() {
				if len(args) == 1 {
					return exit.Usagef("delete needs the key of an item, or --where EXPR: fddhdb %s", cmd.Use)
				}
				return dirAndKeys(1, 0)(cmd, args)
			}
			if len(args) > 1 {
				return exit.Usagef("delete takes keys or --where, not both: %q", args[1])
			}
			return dirArg(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.withCollection(args[0], &o, func(d *db.DB, c *db.Collection) error {
				where.warnOfLabels(e, c)
				var n int
				var err error
				if where.Given() {
					n, err = c.DeleteWhere(cmd.Context(), where.Expr)
				} else {
					n, err = c.Delete(cmd.Context(), args[1:]...)
				}
				if err != nil {
					return where.wrap(err)
				}
				if stats, err := d.Stats(); err == nil &&
					stats.Activity.FreeBytes < stats.Activity.ReserveBytes {
					a := &stats.Activity
					e.Warnf("the disk of %s has %s free, and writes leave %s: fddhdb compact %s gives back the room of deleted items",
						args[0], term.Size(a.FreeBytes), term.Size(a.ReserveBytes), args[0])
				}
				if o.json {
					return e.PrintJSON(map[string]int{"deleted": n})
				}
				e.Printf("deleted %s\n", term.Plural(n, "item", "items"))
				return nil
			})
		},
	}
	o.register(cmd)
	where.register(cmd)
	return cmd
}

func scanCommand(e *env) *cobra.Command {
	var o common
	var limit int
	var where whereFlag
	cmd := &cobra.Command{
		Use:     "scan DIR",
		Short:   "List the items",
		GroupID: groupLook,
		Long: usage.Prose(`
			Scan lists the items in database order, which is the order in which their keys
			were first stored: a table of their keys, labels, fields and codes, or nothing
			if there is no item. The first 200 items decide on the widths of its columns; on
			a terminal longer text is cut. With --json it prints items whole, as get does.

			--where keeps to the items that match an expression, such as

			  label = 'cat' AND year IN (2020, 2021) AND NOT (price >= 10 OR has(image))

			  NAME = VALUE          the value of a field, also != < <= > >=; a VALUE is a
			                        number, a 'string' with '' for a quote in it, true
			                        or false
			  NAME IN (VALUE, ...)  one of several
			  NAME LIKE 'abc%'      the string begins with abc; \% and \_ stand for
			                        themselves
			  NAME IS NULL          the item lacks the field, also IS NOT NULL
			  label = 'x'           x is among the labels of the item, also != and IN
			  has(NAME)             the item has a vector of the modality, or a value of
			                        the field
			  has(label)            the item has labels
			  NOT, AND, OR          bind in this order, and less than parentheses
			A comparison with a field that an item lacks is false, that with != too. An
			index of the field makes it fast; otherwise the items are read.`),
		Example: usage.Example(`
			fddhdb scan wiki.db --limit 10
			fddhdb scan wiki.db --where "label = 'art' AND NOT has(image)"
			fddhdb scan wiki.db --json > items.jsonl`),
		Args: dirArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("limit") && limit < 1 {
				return exit.Usagef("--limit %d: 1 or more items are possible", limit)
			}
			return e.lookAtCollection(args[0], &o, func(_ *db.DB, c *db.Collection) error {
				where.warnOfLabels(e, c)
				show, end, err := e.itemPrinter(c, o.json)
				if err != nil {
					return err
				}
				defer end()
				n := 0
				for it, err := range c.Items(cmd.Context(), where.Expr) {
					if err != nil {
						return where.wrap(err)
					}
					err = show(it)
					if n++; err != nil || n == limit {
						return err
					}
				}
				return nil
			})
		},
	}
	o.register(cmd)
	o.registerSpace(cmd)
	term.PrintsObjects(cmd)
	cmd.Flags().IntVar(&limit, "limit", 0, "stop after `N` items (default: all)")
	where.register(cmd)
	return cmd
}

func countCommand(e *env) *cobra.Command {
	var o common
	var where whereFlag
	cmd := &cobra.Command{
		Use:     "count DIR",
		Short:   "Count the items",
		GroupID: groupLook,
		Long: usage.Prose(`
			Count prints how many items a collection has, or how many match --where.`),
		Example: usage.Example(`
			fddhdb count wiki.db
			fddhdb count wiki.db --where "label = 'art' AND has(image)"
			fddhdb count wiki.db --collection hashes --json`),
		Args: dirArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.lookAtCollection(args[0], &o, func(_ *db.DB, c *db.Collection) error {
				where.warnOfLabels(e, c)
				n, err := c.Count(cmd.Context(), where.Expr)
				if err != nil {
					return where.wrap(err)
				}
				if o.json {
					return e.PrintJSON(map[string]int{"count": n})
				}
				e.Printf("%d\n", n)
				return nil
			})
		},
	}
	o.register(cmd)
	where.register(cmd)
	return cmd
}

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
	if strings.EqualFold(by, "label") ||
		slices.ContainsFunc(schema.Fields, func(f db.Field) bool { return f.Name == unquoted(by) }) {
		return nil
	}
	near := term.Nearest(by, names)
	if near != "" {
		near = "; did you mean " + near + "?"
	}
	return exit.Usagef("%s %s: of collection %s these are possible: %s%s", flag, term.Plain(by), c.Name(),
		strings.Join(names, ", "), near)
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
				return e.withCollection(args[0], &o,
					func(_ *db.DB, c *db.Collection) error {
						return e.renameLabel(cmd.Context(), c, &o,
							rename)
					})
			}
			return e.lookAtCollection(args[0], &o, func(_ *db.DB, c *db.Collection) error {
				facets, err := c.Facets(cmd.Context(), db.FacetQuery{By: "label", Where: where.Expr,
					Limit: limit})
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
		return "", "", exit.Failedf("--rename: no item of collection %s has the label %s%s", c.Name(),
			term.Plain(a), near)
	case found > 1:
		return "", "", exit.Usagef(
			"--rename %q: there are several labels that it may begin with: a program can say which, by RenameLabel", pair)
	}
	return a, b, nil
}
