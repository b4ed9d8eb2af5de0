package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/flags"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/forms"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster"
)

func putCommand(e *env) *cobra.Command {
	var one string
	cmd := &cobra.Command{
		Use:     "put COLLECTION (--item JSON | < FILE)",
		Short:   "Store items that are JSON",
		GroupID: groupItems,
		Long: usage.Prose(`
			Put stores items, each replacing the one that is there under its key: the one of
			--item, which is printed as it is stored, or those of standard input, a line each.
			An item is what get --json prints: key, vectors, labels, fields, payload
			(base64) and, in a collection that is given its codes, code (hexadecimal). An item
			of --item without a key gets a random one.

			When put ends, everything is durable. If it fails, some lines of standard input
			may be stored and others not: the same put may be made again.`),
		Example: usage.Example(`
			fddhdb-cluster put hashes --item '{"key":"cat.jpg","code":"9f3c01d2aa55e870"}'
			fddhdb-cluster put hashes < items.jsonl`),
		Args: arguments(1, 1, "the name of a collection"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return e.withCollection(ctx, args[0], func(ctx context.Context, c *cluster.Client,
				coll *cluster.Collection) error {
				if cmd.Flags().Changed("item") {
					it, err := parseItem([]byte(one))
					if err != nil {
						return exit.Usagef("--item: %w", err)
					}
					key, err := coll.Put(ctx, it)
					if err != nil {
						return e.noCollection(ctx, c, args[0], err)
					}
					if it, err = coll.Get(ctx, key); err != nil {
						return err
					}
					return e.printItem(it)
				}
				if term.File(e.stdin) != nil {
					e.warnf("reading items from the terminal, a line each; Ctrl-D ends them")
				}
				n, err := coll.Import(ctx, readItems(e.stdin), cluster.ImportOptions{})
				if err != nil {
					err = e.noCollection(ctx, c, args[0], err)
					if errors.Is(err, db.ErrInvalid) {
						err = exit.Failedf("%w", err)
					}
					if n > 0 {
						err = exit.Wrap(err, "stored %s of standard input",
							term.Plural(n, "item", "items"))
					}
					return err
				}
				if e.json {
					return e.PrintJSON(map[string]int{"items": n})
				}
				e.Printf("stored %s\n", term.Plural(n, "item", "items"))
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&one, "item", "", "the item, as `JSON`")
	return cmd
}

func parseItem(b []byte) (*db.Item, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	it := new(db.Item)
	if err := d.Decode(it); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("something follows the item")
	}
	return it, nil
}

// maxLine bounds an item that is a line.
const maxLine = 64 << 20

// readItems reads an item from each line.
func readItems(r io.Reader) iter.Seq2[*db.Item, error] {
	return func(yield func(*db.Item, error) bool) {
		lines := bufio.NewScanner(r)
		lines.Buffer(nil, maxLine)
		n := 0
		for lines.Scan() {
			n++
			if len(bytes.TrimSpace(lines.Bytes())) == 0 {
				continue
			}
			it, err := parseItem(lines.Bytes())
			if err == nil && it.Key == "" {
				err = errors.New("the item has no key")
			}
			if err != nil {
				yield(nil, exit.Failedf("standard input, line %d: %w", n, err))
				return
			}
			if !yield(it, nil) {
				return
			}
		}
		if err := lines.Err(); err != nil {
			yield(nil, exit.Failedf("standard input, line %d: %w", n+1, err))
		}
	}
}

func getCommand(e *env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "get COLLECTION KEY...",
		Short:   "Print items by their keys",
		GroupID: groupItems,
		Long: usage.Prose(`
			Get prints the items with these keys, with --json one a line and with all their
			vectors. If a key has no item, the others are printed, and the exit code is 1. A
			key that begins with - stands behind --.`),
		Example: usage.Example(`
			fddhdb-cluster get hashes cat.jpg
			fddhdb-cluster get hashes --json -- -k`),
		Args: arguments(2, -1, "the name of a collection and the key of an item"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.withCollection(cmd.Context(), args[0],
				func(ctx context.Context, c *cluster.Client, coll *cluster.Collection) error {
					var missing []string
					var why error
					for _, key := range args[1:] {
						it, err := coll.Get(ctx, key)
						if errors.Is(err, db.ErrNotFound) {
							missing, why = append(missing, key), err
							continue
						}
						if err == nil {
							err = e.printItem(it)
						}
						if err != nil {
							return err
						}
					}
					if len(missing) == 0 {
						return nil
					}
					if err := e.noCollection(ctx, c, args[0], why); err != why {
						return err
					}
					return exit.Failedf("not found in collection %q: %s", args[0],
						term.Plain(strings.Join(missing, ", ")))
				})
		},
	}
	term.PrintsObjects(cmd)
	return cmd
}

// printItem prints an item, as fddhdb get does.
func (e *env) printItem(it *db.Item) error {
	if e.json {
		return e.PrintJSON(it)
	}
	forms.PrintItem(e.Printer, it)
	return nil
}

func deleteCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:     "delete COLLECTION KEY...",
		Short:   "Delete items by their keys",
		GroupID: groupItems,
		Long: usage.Prose(`
			Delete deletes the items with these keys. A key without an item is no error, and
			counts as the others do: whether there was one is not told.`),
		Example: usage.Example(`fddhdb-cluster delete hashes cat.jpg dog.jpg`),
		Args:    arguments(2, -1, "the name of a collection and the key of an item"),
		RunE: func(cmd *cobra.Command, args []string) error {
			keys := args[1:]
			for _, key := range keys {
				if key == "" || len(key) > db.MaxKeyBytes {
					return exit.Usagef("the key %.40q: keys have 1 to %d bytes", key, db.MaxKeyBytes)
				}
			}
			return e.withCollection(cmd.Context(), args[0],
				func(ctx context.Context, c *cluster.Client, coll *cluster.Collection) error {
					errs := make([]error, len(keys))
					var all sync.WaitGroup
					for i, key := range keys {
						// the client bounds the deletions in flight
						all.Go(func() { errs[i] = coll.Delete(ctx, key) })
					}
					all.Wait()
					if err := errors.Join(errs...); err != nil {
						return e.noCollection(ctx, c, args[0], err)
					}
					if e.json {
						return e.PrintJSON(map[string]int{"keys": len(keys)})
					}
					if len(keys) == 1 {
						e.Printf("1 key has no item now\n")
					} else {
						e.Printf("%s keys have no item now\n", term.Thousands(len(keys)))
					}
					return nil
				})
		},
	}
}

func countCommand(e *env) *cobra.Command {
	var where whereFlag
	cmd := &cobra.Command{
		Use:     "count COLLECTION",
		Short:   "Count the items",
		GroupID: groupFind,
		Long:    usage.Prose(`Count prints how many items a collection has, or how many match --where.`),
		Example: usage.Example(`
			fddhdb-cluster count wiki
			fddhdb-cluster count wiki --where "label = 'art' AND has(image)"`),
		Args: arguments(1, 1, "the name of a collection"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.withCollection(cmd.Context(), args[0],
				func(ctx context.Context, c *cluster.Client, coll *cluster.Collection) error {
					n, err := coll.Count(ctx, where.Expr)
					if err != nil {
						return where.wrap(e.noCollection(ctx, c, args[0], err))
					}
					if e.json {
						return e.PrintJSON(map[string]int{"count": n})
					}
					e.Printf("%d\n", n)
					return nil
				})
		},
	}
	where.register(cmd)
	return cmd
}

func facetsCommand(e *env) *cobra.Command {
	var where whereFlag
	var by string
	var limit int
	cmd := &cobra.Command{
		Use:     "facets COLLECTION --by FIELD",
		Short:   "Count the items by label, or by the values of a field",
		GroupID: groupFind,
		Long: usage.Prose(`
			Facets counts the items of each label, or of each value of a field, the most
			first; with --where of the items that match. An item counts for each of its
			labels. Items without a label, or without a value of the field, are counted last,
			as null. All counts are exact.`),
		Example: usage.Example(`
			fddhdb-cluster facets wiki --by label
			fddhdb-cluster facets wiki --by year --where "label = 'art'" --limit 10`),
		Args: arguments(1, 1, "the name of a collection"),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case by == "":
				return exit.Usagef("--by is missing: label, or the name of a field")
			case cmd.Flags().Changed("limit") && limit < 1:
				return exit.Usagef("--limit %d: 1 or more values are possible", limit)
			}
			return e.withCollection(cmd.Context(), args[0],
				func(ctx context.Context, c *cluster.Client, coll *cluster.Collection) error {
					facets, err := coll.Facets(ctx, db.FacetQuery{By: by, Where: where.Expr, Limit: limit})
					if err != nil {
						return where.wrap(e.noCollection(ctx, c, args[0], err))
					}
					if !e.json {
						forms.PrintValues(e.Printer, by, facets)
						return nil
					}
					for _, n := range forms.Counts(facets) {
						if err := e.PrintJSON(n); err != nil {
							return err
						}
					}
					return nil
				})
		},
	}
	where.register(cmd)
	term.PrintsObjects(cmd)
	cmd.Flags().StringVar(&by, "by", "", "what to count by: label, or a `FIELD`")
	cmd.Flags().IntVar(&limit, "limit", 0, "print the `N` values of the most items (default: all)")
	return cmd
}

func labelsCommand(e *env) *cobra.Command {
	var where whereFlag
	var limit int
	cmd := &cobra.Command{
		Use:     "labels COLLECTION",
		Short:   "List labels",
		GroupID: groupFind,
		Long: usage.Prose(`
			Labels lists the labels that items have, with the number of items of each, the most
			frequent first; with --where of the items that match.`),
		Example: usage.Example(`fddhdb-cluster labels wiki --where "has(image)" --limit 5`),
		Args:    arguments(1, 1, "the name of a collection"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("limit") && limit < 1 {
				return exit.Usagef("--limit %d: 1 or more labels are possible", limit)
			}
			return e.withCollection(cmd.Context(), args[0],
				func(ctx context.Context, c *cluster.Client, coll *cluster.Collection) error {
					facets, err := coll.Facets(ctx, db.FacetQuery{By: "label", Where: where.Expr,
						Limit: limit})
					if err != nil {
						return where.wrap(e.noCollection(ctx, c, args[0], err))
					}
					if !e.json {
						forms.PrintLabels(e.Printer, facets)
						return nil
					}
					for _, n := range facets.Counts {
						label, _ := n.Value.(string)
						err := e.PrintJSON(struct {
							Label string `json:"label"`
							Items int    `json:"items"`
						}{label, n.Items})
						if err != nil {
							return err
						}
					}
					return nil
				})
		},
	}
	where.register(cmd)
	term.PrintsObjects(cmd)
	cmd.Flags().IntVar(&limit, "limit", 0, "list the `N` most frequent labels (default: all)")
	return cmd
}

// A whereFlag is --where.
type whereFlag struct{ flags.Where }

func (w *whereFlag) register(cmd *cobra.Command) {
	cmd.Flags().Var(&w.Where, "where",
		"only items that match, such as \"label = 'cat' AND year >= 2020\": fddhdb help scan")
}

// wrap turns an error about the expression into one about the flag.
func (w *whereFlag) wrap(err error) error {
	var bad *db.WhereError
	if !w.Given() || !errors.As(err, &bad) {
		return err
	}
	return exit.Usagef("--where: column %d: %s", bad.Column, bad.Reason)
}
