package command

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/encoder"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/jsonform"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/shell"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
)

// A shellHost gives a shell the command line and the database of the session.
type shellHost struct{ env *env }

var _ shell.Host = shellHost{}

func (h shellHost) Root(mode term.Mode) *cobra.Command {
	var o shellOptions
	root := newRoot(h.env, &o)
	o.mode = mode
	return root
}

func (h shellHost) Execute(ctx context.Context, root *cobra.Command, args []string) error {
	return h.env.execute(ctx, root, args)
}

func (h shellHost) Meant(word string, names []string) string { return meant(word, names) }
func (h shellHost) Dir() string                              { return h.env.session.dir }
func (h shellHost) ReadOnly() bool                           { return h.env.session.readOnly }
func (h shellHost) IsDatabase(path string) bool              { return isDatabase(path) }

func (h shellHost) Database() (*db.DB, error) { return h.env.session.database(h.env, false) }

func (h shellHost) Collection(name string) (*db.Collection, error) {
	d, err := h.Database()
	if err != nil {
		return nil, err
	}
	return collection(d, name)
}

func (h shellHost) Look(dir string, f func(d *db.DB)) { h.env.lookQuietly(dir, f) }

func (h shellHost) PrintSchemas(names []string, json bool) error {
	for _, name := range names {
		c, err := h.Collection(name)
		if err != nil {
			return err
		}
		schema, err := c.Schema()
		if err != nil {
			return err
		}
		encoders, err := c.Encoders()
		if err != nil {
			return err
		}
		if json {
			form := jsonform.NewSchema(name, schema)
			form.Encoders = encoders
			if err := h.env.PrintJSON(form); err != nil {
				return err
			}
			continue
		}
		h.env.Printf("%s\n", initLine(name, schema))
		for i := range encoders {
			trusted, err := encoder.Trusts(h.Dir(), encoders[i].Command)
			if err != nil {
				return err
			}
			comment := ""
			if !trusted { // who runs the line trusts the encoder
				comment = "# not trusted here: "
			}
			h.env.Printf("%s%s\n", comment, encoderLine(name, &encoders[i]))
		}
	}
	return nil
}

// encoderLine returns the line of the shell that stores an encoder.
func encoderLine(name string, x *db.Encoder) string {
	words := []string{"encoder"}
	if name != "main" {
		words = append(words, "--collection", name)
	}
	if x.Input != db.InputText {
		words = append(words, "--input", string(x.Input))
	}
	set := x.Modality + "=" + quoted(x.Command)
	return term.Plain(quoted(append(words, "--set", set)))
}

// initLine returns the line of the shell that creates a collection.
func initLine(name string, schema db.Schema) string {
	words := []string{"init"}
	if name != "main" {
		words = append(words, "--collection", name)
	}
	for _, m := range schema.Modalities {
		value := fmt.Sprintf("%s:%d", m.Name, m.Dim)
		if m.Sparse {
			value += ":sparse"
		}
		words = append(words, "--modality", value)
	}
	if schema.Bits > 0 {
		words = append(words, "--codes", fmt.Sprint(schema.Bits))
	}
	for _, f := range schema.Fields {
		value := fmt.Sprintf("%s:%s", f.Name, f.Type)
		if f.Indexed {
			value += ":index"
		}
		words = append(words, "--field", value)
	}
	return term.Plain(quoted(words))
}
