package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
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
			return e.withCollection(ctx, args[0], func(ctx context.Context, c *cluster.Client, coll *cluster.Collection) error {
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
						err = exit.Wrap(err, "%s of standard input are stored", term.Plural(n, "item", "items"))
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
