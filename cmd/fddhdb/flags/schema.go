package flags

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/textform"
	"github.com/fddhdb/fddhdb/db"
)

// Schema is the flags of init, which declare a collection.
type Schema struct {
	modalities Modalities
	fields     Fields
	metrics    Metrics
	bits       int
	shared     bool
}

// Register adds the flags.
func (o *Schema) Register(f *pflag.FlagSet) {
	f.Var(&o.modalities, "modality", "a kind of vectors and its number of dimensions; repeat it for each")
	o.metrics.Register(f)
	f.BoolVar(&o.shared, "shared", false, "all modalities share one space")
	f.IntVar(&o.bits, "codes", 0, "items bring codes of so many `BITS`")
	f.Var(&o.fields, "field", "a field and its type: string, int, float, bool or time; repeat it for each")
}

// Schema checks that the flags go together, and returns what they declare.
func (o *Schema) Schema(f *pflag.FlagSet) (db.Schema, error) {
	schema := db.Schema{Modalities: o.modalities.List, Bits: o.bits, Fields: o.fields.List}
	given := f.Changed("codes")
	switch {
	case given && len(schema.Modalities) > 0:
		return schema, exit.Usagef("--modality and --codes: a collection either learns its codes or is given them")
	case given && (o.shared || o.metrics.Given()):
		return schema, exit.Usagef("--metric, --space-of and --shared are of modalities, and with --codes there are none")
	case o.shared && len(o.metrics.SpaceOf.List) > 0:
		return schema, exit.Usagef("--shared is of all modalities: leave out --space-of")
	case given:
		if err := CheckBits("--codes", o.bits); err != nil {
			return schema, err
		}
	case len(schema.Modalities) == 0:
		return schema, exit.Usagef("init needs --modality NAME:DIM for each kind of vectors, or --codes BITS")
	}
	if err := o.metrics.Declare(schema.Modalities); err != nil {
		return schema, err
	}
	for i := 1; o.shared && i < len(schema.Modalities); i++ {
		schema.Modalities[i].SpaceOf = schema.Modalities[0].Name
	}
	return schema, nil
}

// Modalities is the value of --modality.
type Modalities struct{ List []db.Modality }

func (l *Modalities) String() string { return "" }
func (l *Modalities) Type() string   { return "NAME:DIM[:sparse]" }

func (l *Modalities) Set(s string) error {
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
	l.List = append(l.List, db.Modality{Name: name, Dim: dim, Sparse: hasKind})
	return nil
}

// Fields is the value of --field.
type Fields struct{ List []db.Field }

func (l *Fields) String() string { return "" }
func (l *Fields) Type() string   { return "NAME:TYPE[:index]" }

func (l *Fields) Set(s string) error {
	f, err := textform.ParseField(s)
	if err != nil {
		return err
	}
	l.List = append(l.List, f)
	return nil
}
