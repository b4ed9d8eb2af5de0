package command

import (
	"encoding/hex"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/flags"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/forms"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/ingest"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/run"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/source"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/internal/rows"
)

func putCommand(e *run.Env) *cobra.Command {
	v := e.NewVerb(run.GroupItems, "put DIR KEY", "Store one item", `
		Put stores an item under a key, replacing the one that is there, and prints it
		as it is stored: in a trained collection with its code. It comes from the
		labels if the model knows one of them, else from the vectors.

		A vector is its numbers, v,v,..., or those that are not 0, each behind its
		dimension, counted from 0: i:v,i:v,..., and : if there are none. Either goes
		where the modality is of the other form.

		--picture stores what import --pictures would: the vectors or the code of a
		picture, its size and what the camera has noted.`, `
		fddhdb put photos.db hen.jpg --picture ~/Pictures/hen.jpg --labels bird
		fddhdb put wiki.db cat.jpg --vector text=.1,.1,.2,0,0,.1,.1,.1,.2,.1 --labels 3,7
		fddhdb put news.db story --vector text=3:1.5,17:2
		fddhdb put hashes.db cat.jpg --code 9f3c01d2aa55e870 --field year=2024`).OnCollection()
	vectors := flags.NamedList{Kind: "NAME=v,v,...|NAME=i:v,..."}
	fields := flags.NamedList{Kind: "NAME=VALUE", Empty: true}
	var labels, code, payload, picture string
	var thumbnail bool
	v.Flags.Var(&vectors, "vector", "the vector of a modality; repeat it for each")
	v.Flags.StringVar(&labels, "labels", "", "labels, `a,b,...`")
	v.Flags.Var(&fields, "field", "the value of a field; repeat it for each")
	v.Flags.StringVar(&code, "code", "", "the code as `HEX`, in a collection that is given its codes")
	v.Flags.StringVar(&payload, "payload", "", "bytes to keep with the item, as `TEXT`")
	v.Flags.StringVar(&picture, "picture", "", "make the vectors or the code, and fields, of the picture in `FILE`")
	v.Flags.BoolVar(&thumbnail, "thumbnails", false, "with --picture: keep a small picture as the payload")
	return v.Does(func() (err error) {
		item := rows.NewItem()
		item.Key, item.Labels = v.Args[1], flags.SplitList(labels)
		if payload != "" {
			item.Payload = []byte(payload)
		}
		for _, x := range vectors.List {
			vector, err := source.ParseVector(x.Value)
			if err != nil {
				return exit.Usagef("--vector %s: %w", x.Name, err)
			}
			if vector.Sparse != nil {
				item.Sparse[x.Name] = *vector.Sparse
			} else {
				item.Vectors[x.Name] = vector.Dense
			}
		}
		if item.Code, err = parseCode(code); err != nil {
			return err
		}
		switch {
		case picture != "" && code != "":
			return exit.Usagef("--picture and --code: one of them makes the code")
		case thumbnail && (picture == "" || payload != ""):
			return exit.Usagef("--thumbnails is about --picture, and takes the place of --payload")
		}
		return v.Change(func() error {
			switch bits := v.Schema.Bits; {
			case picture != "":
			case item.Code != nil && bits == 0:
				return exit.Usagef("--code: collection %q makes its codes itself", v.Collection.Name())
			case item.Code == nil && bits > 0:
				return exit.Usagef("--code HEX is missing: the items of collection %q bring their codes, of %d bits", v.Collection.Name(), bits)
			case code+payload == "" && len(vectors.List)+len(fields.List) == 0 && !v.Given("labels"):
				return exit.Usagef("put %q: nothing to store: --vector NAME=v,v,..., --picture FILE, --labels a,b, --field NAME=VALUE or --payload TEXT", item.Key)
			}
			for _, x := range vectors.List {
				if _, err := v.FindModality("--vector", x.Name); err != nil {
					return err
				}
			}
			if item.Fields, err = fieldValues(v.Schema, fields.List); err != nil {
				return err
			}
			if picture != "" {
				opt := source.PictureOptions{Thumbnails: thumbnail, Open: ingest.PictureEncoders(v)}
				if err := source.AddPicture(v.Ctx, v.Collection, v.Schema, opt, picture, &item); err != nil {
					return err
				}
			}
			key, err := v.Collection.Put(v.Ctx, &item)
			if err != nil {
				return err
			}
			stored, err := v.Collection.Get(v.Ctx, key)
			if err != nil {
				return err
			}
			return printItems(v, true, func(show func(*db.Item) error) error { return show(stored) })
		})
	})
}

// parseCode parses the value of --code; "" gives nil.
func parseCode(hexadecimal string) ([]byte, error) {
	if hexadecimal == "" {
		return nil, nil
	}
	code, err := hex.DecodeString(hexadecimal)
	if err != nil {
		return nil, exit.Usagef("--code %q: not hexadecimal: two digits a byte are expected", hexadecimal)
	}
	return code, nil
}

// fieldValues parses NAME=VALUE by the declared types of the fields.
func fieldValues(s db.Schema, given []flags.Named) (map[string]any, error) {
	values := map[string]any{}
	for _, g := range given {
		i := slices.IndexFunc(s.Fields, func(f db.Field) bool { return f.Name == g.Name })
		if i < 0 {
			hint := "the collection has none"
			if len(s.Fields) > 0 {
				hint = "there is " + strings.Join(namesOf(s.Fields), ", ")
			}
			return nil, exit.Usagef("--field: there is no field %q: %s", g.Name, hint)
		}
		value, err := rows.ParseValue(s.Fields[i].Type, g.Value)
		if err != nil {
			return nil, exit.Usagef("--field %s: %w", g.Name, err)
		}
		values[g.Name] = value
	}
	return values, nil
}

// printItems prints the items that f shows: as JSON, as a table, or if they are few whole, with all that they
// have.
func printItems(v *run.Verb, few bool, f func(show func(*db.Item) error) error) error {
	switch {
	case v.JSON:
		return f(func(it *db.Item) error { return v.PrintJSON(it) })
	case few && !v.Flat():
		return f(func(it *db.Item) error { forms.PrintItem(v.Printer, it); return nil })
	}
	columns := append([]term.Column{term.Left("key"), term.Left("labels")},
		forms.FieldColumns(v.Schema.Fields)...)
	columns = append(columns, term.Left("code"))
	if v.Flat() {
		columns = append(columns, term.Left("code from"))
	}
	t := v.NewLongTable(columns)
	shown := v.Flat() // without items people and scripts that read text get nothing
	err := f(func(it *db.Item) error {
		cells := []any{term.TextCell(it.Key), term.TextCell(strings.Join(it.Labels, ","))}
		cells = append(cells, forms.FieldCells(v.Schema.Fields, it)...)
		cells = append(cells, term.TextCell(hex.EncodeToString(it.Code)), term.TextCell(it.CodeFrom))
		t.Add(cells[:len(columns)]...)
		shown = true
		return nil
	})
	if shown {
		t.End()
	}
	return err
}

func getCommand(e *run.Env) *cobra.Command {
	v := e.NewVerb(run.GroupItems, "get DIR KEY...", "Print items by their keys", `
		Get prints the items with these keys, with --json one a line and with all
		their vectors. The code is that of the active space, or with --space N of that
		one, in hexadecimal; code_from says what it was made from: labels, fused (its
		vectors), a modality (its vector of that alone), or given.

		If a key has no item, the others are printed, and the exit code is 1. A key that
		begins with - stands behind --, here and with put and delete.`, `
		fddhdb get wiki.db 0 1 2
		fddhdb get wiki.db 0 --json
		fddhdb get wiki.db -- -k`).OnCollection().InSpace().PrintsLines()
	return v.Looks(func() error {
		var missing []string
		err := printItems(v, true, func(show func(*db.Item) error) error {
			for _, key := range v.Args[1:] {
				it, err := v.Collection.Get(v.Ctx, key)
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
			return nil
		})
		if err == nil && len(missing) > 0 {
			err = exit.Failedf("not found in collection %q: %s", v.Collection.Name(), strings.Join(missing, ", "))
		}
		return err
	})
}

func deleteCommand(e *run.Env) *cobra.Command {
	v := e.NewVerb(run.GroupItems, "delete DIR (KEY... | --where EXPR)", "Delete items by their keys or by what they are",
		`
		Delete deletes the items with these keys, or all that match --where, in one
		commit, and says how many there were. A key without an item is no error. Count
		with the same --where says beforehand how many there are.`, `
		fddhdb delete wiki.db 17 18
		fddhdb delete shop.db --where "sold = true AND year <= 2020"`).OnCollection().Filtered()
	return v.Does(func() error {
		switch keys := v.Args[1:]; {
		case !v.Filter.Given() && len(keys) == 0:
			return exit.Usagef("delete needs the key of an item, or --where EXPR: fddhdb %s", v.Cmd.Use)
		case v.Filter.Given() && len(keys) > 0:
			return exit.Usagef("delete takes keys or --where, not both: %q", keys[0])
		}
		return v.Change(func() (err error) {
			n := 0
			if v.Filter.Given() {
				n, err = v.Collection.DeleteWhere(v.Ctx, v.Filter.Expr)
			} else {
				n, err = v.Collection.Delete(v.Ctx, v.Args[1:]...)
			}
			if err != nil {
				return err
			}
			if v.At != nil {
				return v.Tell(map[string]int{"deleted": n}, "deleted %s", term.Plural(n, "item", "items"))
			}
			if stats, err := v.DB.Stats(v.Ctx); err == nil &&
				stats.Activity.FreeBytes < stats.Activity.ReserveBytes {
				a := &stats.Activity
				v.Warnf("the disk of %s has %s free, and writes leave %s: fddhdb compact %[1]s gives back the room of deleted items",
					v.Dir, term.Size(a.FreeBytes), term.Size(a.ReserveBytes))
			}
			return v.Tell(map[string]int{"deleted": n}, "deleted %s", term.Plural(n, "item", "items"))
		})
	})
}

func scanCommand(e *run.Env) *cobra.Command {
	v := e.NewVerb(run.GroupLook, "scan DIR", "List the items", `
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
		  NAME BETWEEN A AND B  from A to B, both included
		  NAME CONTAINS 'abc'   the string contains abc, in any case
		  NAME LIKE 'a_c%'      the string matches: % is any text, _ one character;
		                        \% and \_ stand for themselves. ILIKE: in any case
		                        NOT IN, NOT BETWEEN, NOT LIKE and so on: the others
		  NAME IS NULL          the item lacks the field, also IS NOT NULL
		  label = 'x'           x is among the labels of the item, also != and IN
		  has(NAME)             the item has a vector of the modality, or a value of
		                        the field
		  has(label)            the item has labels
		  NOT, AND, OR          bind in this order, and less than parentheses
		A comparison with a field that an item lacks is false, that with != too. An
		index of the field makes it fast; otherwise the items are read.`, `
		fddhdb scan wiki.db --limit 10
		fddhdb scan wiki.db --where "label = 'art' AND NOT has(image)"
		fddhdb scan wiki.db --json > items.jsonl`).OnCollection().InSpace().Filtered().PrintsLines()
	var limit int
	v.Count(&limit, "limit", 0, 1, "stop after `N` items (default: all)")
	return v.Looks(func() error {
		return printItems(v, false, func(show func(*db.Item) error) error {
			n := 0
			for it, err := range v.Collection.Items(v.Ctx, v.Filter.Expr) {
				if err == nil {
					err = show(it)
				}
				if n++; err != nil || n == limit {
					return err
				}
			}
			return nil
		})
	})
}

func countCommand(e *run.Env) *cobra.Command {
	v := e.NewVerb(run.GroupLook, "count DIR", "Count the items", `
		Count prints how many items a collection has, or how many match --where.`, `
		fddhdb count wiki.db
		fddhdb count wiki.db --where "label = 'art' AND has(image)"
		fddhdb count wiki.db --collection hashes --json`).OnCollection().Filtered()
	return v.Looks(func() error {
		n, err := v.Collection.Count(v.Ctx, v.Filter.Expr)
		if err != nil {
			return err
		}
		return v.Tell(map[string]int{"count": n}, "%d", n)
	})
}

func facetsCommand(e *run.Env) *cobra.Command {
	v := e.NewVerb(run.GroupLook, "facets DIR", "Count the items by label, or by the values of a field",
		`
		Facets counts the items of each label, or of each value of the field --by, the most
		first; with --where of the items that match. An item counts for each of its
		labels. Items without a label, or without a value of the field, are counted
		last, as null. A field of the name label stands in double quotes.

		All counts are exact. They come from what filters read; without an index on the
		field all items that match are read. search --facets counts the items of an
		answer.`, `
		fddhdb facets wiki.db
		fddhdb facets wiki.db --by year --where "label = 'art'" --limit 10`).OnCollection().Filtered().PrintsLines()
	var by string
	var limit int
	v.Flags.StringVar(&by, "by", "label", "what to count by: label, or a `FIELD`")
	v.Count(&limit, "limit", 0, 1, "print the `N` values of the most items (default: all)")
	return v.Looks(func() error {
		if err := checkFacet(v, "--by", by); err != nil {
			return err
		}
		facets, err := v.Collection.Facets(v.Ctx, db.FacetQuery{By: by, Where: v.Filter.Expr, Limit: limit})
		if err != nil {
			return err
		}
		return run.List(v, forms.Counts(facets),
			func() { forms.PrintValues(v.Printer, strings.Trim(by, `"`), facets) })
	})
}

// checkFacet checks what a flag names to count by.
func checkFacet(v *run.Verb, flag, by string) error {
	fields := namesOf(v.Schema.Fields)
	if strings.EqualFold(by, "label") || slices.Contains(fields, strings.Trim(by, `"`)) {
		return nil
	}
	names := []string{"label"}
	for _, name := range fields {
		if strings.EqualFold(name, "label") {
			name = `"` + name + `"`
		}
		names = append(names, name)
	}
	return exit.Usagef("%s %s: of collection %s these are possible: %s%s", flag, term.Plain(by), v.Collection.Name(),
		strings.Join(names, ", "), run.Meaning(by, names))
}

func namesOf(fields []db.Field) (names []string) {
	for _, f := range fields {
		names = append(names, f.Name)
	}
	return names
}

// renameLabel gives a label another name, of OLD=NEW: OLD is a label that items have, and either may have =
// in it.
func renameLabel(v *run.Verb, pair string) error {
	labels, err := v.Collection.Labels(v.Ctx)
	if err != nil {
		return err
	}
	old, name, found := "", "", 0
	for i := range len(pair) {
		if pair[i] == '=' && slices.Contains(labels, pair[:i]) {
			old, name = pair[:i], pair[i+1:]
			found++
		}
	}
	switch typed, _, _ := strings.Cut(pair, "="); {
	case found == 0:
		return exit.Failedf("--rename-label %q: OLD=NEW is expected, and no item of collection %s has the label %s%s",
			pair, v.Collection.Name(), term.Plain(typed), run.Meaning(typed, labels))
	case found > 1:
		return exit.Usagef("--rename-label %q: there are several labels that it may begin with: a program can say which, by RenameLabel", pair)
	}
	switch err := v.Collection.RenameLabel(v.Ctx, old, name); {
	case errors.Is(err, db.ErrExists):
		return exit.Failedf("collection %s has items of a label %s already: to make one label of both, export the items of one, change the label there, and import them", v.Collection.Name(), term.Plain(name))
	case err != nil:
		return err
	}
	return v.Tell(map[string]string{"renamed": old, "label": name}, "renamed label %s to %s", term.Plain(old),
		term.Plain(name))
}
