package command

import (
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/flags"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/source"
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
