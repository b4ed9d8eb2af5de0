package command

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/flags"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/source"
	"github.com/fddhdb/fddhdb/db"
)

func initCommand(e *env) *cobra.Command {
	var o common
	var modalities modalityList
	var fields fieldList
	var metrics metricFlags
	var bits int
	var shared bool
	cmd := &cobra.Command{
		Use:     "init DIR (--modality NAME:DIM... | --codes BITS)",
		Short:   "Create a database or a further collection",
		GroupID: groupItems,
		Long: prose(`
			Init creates a database in the folder DIR, with one collection. On a database
			that exists it creates a further collection, which --collection names.

			A learned collection has modalities: the kinds of feature vectors that its
			items have, each with its number of dimensions. Training makes the codes. Of
			the vectors of a modality with :sparse, such as bags of words, only the
			numbers that are not 0 are stored and computed with; the codes are the same. A
			collection with --codes has none: its items bring codes of that many bits, a
			multiple of 8 from 8 to 4096, and there is nothing to train.

			Before training, search compares vectors by the --metric of their modality: the
			cosine of the angle between them, if none is given, the inner product (dot), or
			the Euclidean distance (l2). Modalities whose vectors one encoder has made, as
			of pictures and of texts, share a space: --space-of image=text, or --shared for
			all. Then a text finds pictures without training. Such modalities have one
			number of dimensions and one metric. Alter changes both at any time.

			Fields are typed values beside the vectors. Those marked :index are the ones
			that filters can use. Alter adds modalities and fields later.`),
		Example: example(`
			fddhdb init wiki.db --modality image:128 --modality text:10
			fddhdb init news.db --modality image:512 --modality text:30000:sparse
			fddhdb init clip.db --modality image:512 --modality text:512 --shared
			fddhdb init wiki.db --collection hashes --codes 64 --field year:int:index`),
		Args: dirArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			schema := db.Schema{Modalities: modalities.list, Bits: bits, Fields: fields.list}
			given := cmd.Flags().Changed("codes")
			switch {
			case given && len(schema.Modalities) > 0:
				return exit.Usagef("--modality and --codes: a collection either learns its codes or is given them")
			case given && (shared || metrics.given()):
				return exit.Usagef("--metric, --space-of and --shared are of modalities, and with --codes there are none")
			case shared && len(metrics.spaceOf.List) > 0:
				return exit.Usagef("--shared is of all modalities: leave out --space-of")
			case given:
				if err := flags.CheckBits("--codes", bits); err != nil {
					return err
				}
			case len(schema.Modalities) == 0:
				return exit.Usagef("init needs --modality NAME:DIM for each kind of vectors, or --codes BITS")
			}
			if err := metrics.declare(schema.Modalities); err != nil {
				return err
			}
			for i := 1; shared && i < len(schema.Modalities); i++ {
				schema.Modalities[i].SpaceOf = schema.Modalities[0].Name
			}
			var stored db.Schema
			err := e.withNew(args[0], func(d *db.DB) error {
				c, err := createCollection(cmd, d, o.collection, schema)
				if err == nil {
					stored, err = c.Schema()
				}
				return err
			})
			if err != nil {
				return err
			}
			if o.json {
				return e.PrintJSON(newSchemaJSON(o.collection, stored))
			}
			e.Printf("created collection %s in %s: %s\n", o.collection, args[0], source.DescribeSchema(stored))
			return nil
		},
	}
	o.register(cmd)
	cmd.Flags().Var(&modalities, "modality", "a kind of vectors and its number of dimensions; repeat it for each")
	metrics.register(cmd)
	cmd.Flags().BoolVar(&shared, "shared", false, "all modalities share one space")
	cmd.Flags().IntVar(&bits, "codes", 0, "items bring codes of so many `BITS`")
	cmd.Flags().Var(&fields, "field", "a field and its type: string, int, float, bool or time; repeat it for each")
	return cmd
}

// createCollection creates a collection for a verb.
func createCollection(cmd *cobra.Command, d *db.DB, name string, schema db.Schema) (*db.Collection, error) {
	c, err := d.CreateCollection(cmd.Context(), name, schema)
	if errors.Is(err, db.ErrExists) {
		return nil, exit.Wrap(err, "name another one with --collection")
	}
	return c, err
}

// schemaJSON is the --json form of init and alter.
type schemaJSON struct {
	Collection string        `json:"collection"`
	Modalities []db.Modality `json:"modalities"`
	Bits       *int          `json:"bits"` // null: training decides
	Fields     []db.Field    `json:"fields"`
	Encoders   []db.Encoder  `json:"encoders,omitempty"` // of .schema alone
}

func newSchemaJSON(collection string, s db.Schema) schemaJSON {
	out := schemaJSON{Collection: collection, Modalities: s.Modalities, Fields: s.Fields}
	if s.Bits > 0 {
		out.Bits = &s.Bits
	}
	// Never null, so that scripts can iterate without a check.
	if out.Modalities == nil {
		out.Modalities = []db.Modality{}
	}
	if out.Fields == nil {
		out.Fields = []db.Field{}
	}
	return out
}

// modalityList is the value of --modality.
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

// fieldList is the value of --field.
type fieldList struct{ list []db.Field }

func (l *fieldList) String() string { return "" }
func (l *fieldList) Type() string   { return "NAME:TYPE[:index]" }

func (l *fieldList) Set(s string) error {
	f, err := source.ParseField(s)
	if err != nil {
		return err
	}
	l.list = append(l.list, f)
	return nil
}
