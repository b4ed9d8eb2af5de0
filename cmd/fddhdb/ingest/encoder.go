package ingest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/encoder"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/flags"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/run"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/shell"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
)

func EncoderCommand(e *run.Env) *cobra.Command {
	v := e.NewVerb(run.GroupLearn, "encoder DIR", "Store what makes vectors of texts and files, for search",
		`
		An encoder makes vectors of a modality: of texts, or with --input file of files.
		Then "search --text", "search --picture", "explore", "serve" and "mcp" need no
		vectors. Without flags, encoder lists the encoders of a collection. COMMAND is one of

		  PROGRAM ARGUMENTS       a program that reads a text, or a path, a line, and prints a
		                          vector a line, flushed: numbers, a JSON array,
		                          {"i":[3,17],"v":[1.5,2]}, or {"error":"..."}. It runs
		                          without a shell in the folder that holds the database.
		  http://.../v1/embeddings MODEL [key=VARIABLE]
		                          Ollama, LM Studio, TEI, vLLM or OpenAI, for texts. VARIABLE
		                          is the environment variable with the token.
		  http://.../predict MODEL
		                          Immich's machine learning: CLIP for texts and pictures
		  model2vec DIR           a model of static embeddings for texts, such as potion-base-8M
		  builtin:look            shapes and colours of pictures, with --input file

		--set runs the encoder once, and stores a fingerprint of its vectors. A search by an
		encoder with another fingerprint is an error: its model has changed. Where items have
		vectors, --set of such an encoder needs --replace; make their vectors again then.

		A program runs with your rights, and an address gets what you search by. So an encoder
		from another machine or user works only after --trust; --set trusts what it stores.`, `
		fddhdb encoder photos.db --set image="python3 clip.py"
		fddhdb encoder photos.db --set image="http://localhost:3003/predict ViT-B-32__openai"
		fddhdb encoder notes.db --set text="http://localhost:11434/v1/embeddings all-minilm"
		fddhdb encoder notes.db --set text="model2vec potion-base-8M"
		fddhdb search notes.db --text "red car at night"`).OnCollection().PrintsLines()
	sets := flags.NamedList{Kind: "NAME=COMMAND"}
	var remove, trust []string // modalities
	var input string
	var replace bool
	v.Flags.Var(&sets, "set", "store the encoder of a modality; repeat it for each")
	v.Flags.StringArrayVar(&remove, "remove", nil,
		"forget the encoder of the modality `NAME`; repeat it for each")
	v.Flags.StringArrayVar(&trust, "trust", nil,
		"allow the encoder of the modality `NAME` to run on this machine; repeat it for each")
	v.Flags.BoolVar(&replace, "replace", false,
		"with --set: also where items have vectors of another encoder")
	v.Flags.StringVar(&input, "input", "text",
		"what the encoder reads, one a line: text, or file for paths of files")
	return v.Does(func() error {
		changes := len(sets.List)+len(remove) > 0
		switch {
		case input != string(db.InputText) && input != string(db.InputFile):
			return exit.Usagef("--input %q: text and file are possible", input)
		case len(trust) > 0 && changes:
			return exit.Usagef("--trust is of encoders that are stored: --set trusts what it stores; give it alone")
		case replace && len(sets.List) == 0:
			return exit.Usagef("--replace is of --set NAME=COMMAND, which is missing")
		}
		var set []db.Encoder
		for _, n := range sets.List {
			if slices.Contains(remove, n.Name) {
				return exit.Usagef("--set and --remove %s: one of both is possible", n.Name)
			}
			command, err := parseCommand("--set "+n.Name, n.Value)
			if err != nil {
				return err
			}
			set = append(set, db.Encoder{Modality: n.Name, Input: db.EncoderInput(input), Command: command})
		}
		if err := identify(v, set); err != nil {
			return err
		}
		open := v.Look
		if changes {
			open = v.Change
		}
		return open(func() error {
			all, err := alterEncoders(v, input, set, replace, remove, trust)
			if err == nil && len(all) > 0 {
				err = v.Collection.Alter(v.Ctx, db.Alteration{Encoders: all})
			}
			if err != nil {
				return err
			}
			schema, err := v.Collection.Schema(v.Ctx) // has them in order
			if err != nil {
				return err
			}
			return listEncoders(v, schema.Encoders)
		})
	})
}

// parseCommand cuts what a flag says into the words of a command.
func parseCommand(flag, value string) ([]string, error) {
	words, open := shell.SplitWords(value)
	switch {
	case open != 0:
		return nil, exit.Usagef("%s: %q ends within %q", flag, value, open)
	case len(words) == 0:
		return nil, exit.Usagef("%s: the program is missing", flag)
	}
	return shell.Unquoted(words), nil
}

// newEncoders returns the encoders of a new modality: one of the input, and one of texts if the command reads
// texts, too. It runs each once to learn the dimensions of the vectors, and notes that the user trusts the
// command.
func newEncoders(v *run.Verb, flag, value, modality string, input db.EncoderInput) (all []db.Encoder, dim int,
	err error) {
	command, err := parseCommand(flag, value)
	if err != nil {
		return nil, 0, err
	}
	all = []db.Encoder{{Modality: modality, Input: input, Command: command}}
	if input == db.InputFile && encoder.TakesBoth(command) {
		all = append(all, db.Encoder{Modality: modality, Input: db.InputText, Command: command})
	}
	for i := range all {
		if err = checkProgram(v, flag, &all[i]); err != nil {
			return nil, 0, err
		}
		p, err := program(v.Dir, &all[i])
		if err == nil {
			all[i].Fingerprint, dim, err = encoder.Identify(v.Ctx, p, dim)
		}
		if err == nil {
			err = encoder.Trust(v.Dir, command)
		}
		if err != nil {
			return nil, 0, err
		}
	}
	return all, dim, nil
}

// identify gives encoders that are to be stored their fingerprints. It runs each while the database is
// closed: that may take minutes.
func identify(v *run.Verb, set []db.Encoder) error {
	if len(set) == 0 {
		return nil
	}
	dims := make([]int, len(set))
	err := v.Look(func() error {
		for i := range set {
			m, err := v.FindModality("--set", set[i].Modality)
			if err != nil {
				return err
			}
			if err := checkProgram(v, "--set "+set[i].Modality, &set[i]); err != nil {
				return err
			}
			dims[i] = m.Dim
		}
		return nil
	})
	for i := range set {
		var p encoder.Program
		if err == nil {
			p, err = program(v.Dir, &set[i])
		}
		if err == nil {
			set[i].Fingerprint, _, err = encoder.Identify(v.Ctx, p, dims[i])
		}
	}
	return err
}

// alterEncoders returns the encoders to set, and to remove, and notes which are trusted.
func alterEncoders(v *run.Verb, input string, set []db.Encoder, replace bool,
	remove, trust []string) (all []db.Encoder, err error) {
	old := v.Schema.Encoders
	of := func(name string) func(db.Encoder) bool {
		return func(x db.Encoder) bool { return x.Modality == name && string(x.Input) == input }
	}
	for _, name := range append(trust, remove...) {
		i := slices.IndexFunc(old, of(name))
		switch {
		case i < 0:
			return nil, exit.Usagef("--trust or --remove %s: collection %q has no encoder of input %s for it: %s lists them",
				name, v.Collection.Name(), input, EncoderVerb(v.Dir, v.Collection.Name(), db.InputText))
		case len(remove) > 0:
			all = append(all, db.Encoder{Modality: name, Input: old[i].Input})
		default:
			if err := encoder.Trust(v.Dir, old[i].Command); err != nil {
				return nil, err
			}
		}
	}
	for _, x := range set {
		if i := slices.IndexFunc(old, of(x.Modality)); i >= 0 && !replace {
			if err := checkSame(v, &old[i], &x); err != nil {
				return nil, err
			}
		}
		all = append(all, x)
		// Trust comes first: if storing fails afterwards, the encoder is trusted but never runs.
		if err := encoder.Trust(v.Dir, x.Command); err != nil {
			return nil, fmt.Errorf("%w: --set %s trusts the encoder, and cannot note that", err, x.Modality)
		}
	}
	return all, nil
}

// checkSame refuses an encoder that makes other vectors than the one that is stored, if items have vectors of
// that.
func checkSame(v *run.Verb, old, x *db.Encoder) error {
	likeness := encoder.Likeness(old.Fingerprint, x.Fingerprint)
	if old.Fingerprint == nil || likeness >= encoder.LeastLikeness {
		return nil
	}
	items, err := v.Collection.Count(v.Ctx, `has("`+strings.ReplaceAll(x.Modality, `"`, `""`)+`")`)
	if err == nil && items > 0 {
		err = exit.Failedf("--set %s: %s makes other vectors than the stored encoder, %s: the likeness is %.2f, and %.2f is the least; %d items have vectors of the stored one: to store this one, give --replace, and make their vectors again",
			x.Modality, term.Plain(run.Quoted(x.Command)), term.Plain(run.Quoted(old.Command)), likeness,
			encoder.LeastLikeness, items)
	}
	return err
}

// checkProgram refuses a program that is not there, and warns of arguments that look like files of
// this folder where the program, which runs in another one, will not find them.
func checkProgram(v *run.Verb, flag string, x *db.Encoder) error {
	p, err := program(v.Dir, x)
	if err != nil {
		return err
	}
	if err := p.Find(); err != nil {
		return exit.Usagef("%s: %w", flag, err)
	}
	for _, word := range x.Command[1:] {
		if word != "" && !filepath.IsAbs(word) && run.IsFile(word) &&
			!run.IsFile(filepath.Join(p.Dir, word)) {
			v.Warnf("warning: %s: the program runs in %s, where there is no %s: give the whole path",
				flag, term.Plain(p.Dir), term.Plain(word))
		}
	}
	return nil
}

var yesNo = map[bool]string{true: "yes", false: "no"}

// encoderForm is an encoder of a list.
type encoderForm struct {
	db.Encoder
	Kind    string `json:"kind"`
	Trusted bool   `json:"trusted"`
}

// listEncoders prints the encoders of a collection.
func listEncoders(v *run.Verb, all []db.Encoder) error {
	var forms []encoderForm
	var rows [][]any
	columns := []term.Column{term.Left("modality"), term.Left("input"), term.Left("kind"),
		term.Left("command"), term.Left("trusted")}
	if slices.ContainsFunc(all, func(x db.Encoder) bool { return x.Standby }) {
		columns = append(columns, term.Left("standby"))
	}
	for _, x := range all {
		trusted, err := encoder.Trusts(v.Dir, x.Command)
		if err != nil {
			return err
		}
		kind := (&encoder.Program{Command: x.Command}).Kind()
		forms = append(forms, encoderForm{x, kind, trusted})
		rows = append(rows, []any{term.TextCell(x.Modality), string(x.Input), kind,
			term.TextCell(run.Quoted(x.Command)),
			yesNo[trusted], yesNo[x.Standby]}[:len(columns)])
	}
	return run.List(v, forms, func() {
		if len(all) == 0 && !v.Flat() {
			v.Printf("collection %s has no encoders\n", v.Collection.Name())
			return
		}
		v.PrintTable(columns, rows)
	})
}

// program returns how the encoder of a database in dir is run: in the folder that holds the
// database, from wherever it is searched; for a database of a server in the current one, to which its trust
// is bound, too.
func program(dir string, of *db.Encoder) (encoder.Program, error) {
	p := encoder.Program{Modality: of.Modality, Input: of.Input, Command: of.Command,
		Fingerprint: of.Fingerprint}
	folder, err := encoder.Folder(dir)
	if p.Dir = filepath.Dir(folder); run.IsURL(dir) && err == nil {
		p.Dir, err = os.Getwd()
	}
	return p, err
}

// Trusted is program for an encoder that is to run. It refuses one that the user has neither set nor trusted.
func Trusted(dir, collection string, of *db.Encoder) (encoder.Program, error) {
	p, err := program(dir, of)
	if err != nil {
		return p, err
	}
	trusts, err := encoder.Trusts(dir, of.Command)
	if err == nil && !trusts {
		err = exit.Failedf("the encoder of %s is not run, as you have not set it here: %s; if it may %s: %s --trust %s",
			of.Modality, term.Plain(run.Quoted(of.Command)), p.May(),
			EncoderVerb(dir, collection, of.Input), of.Modality)
	}
	return p, err
}

// Encoders returns the encoders of texts and files that the collections have and the user trusts, now and
// when they are asked for. It prints a warning for each of the others. The caller closes the pool.
func Encoders(v *run.Verb, dir string, d api.Database) (*encoder.Pool, error) {
	lookup := func(ctx context.Context, name string, refused func(error)) (all []encoder.Stored, err error) {
		c, err := d.Collection(ctx, name)
		if err != nil {
			return nil, err
		}
		schema, err := c.Schema(ctx)
		if err != nil {
			return nil, err
		}
		for i := range schema.Encoders {
			p, err := Trusted(dir, name, &schema.Encoders[i])
			if err != nil {
				refused(err)
				continue
			}
			all = append(all, encoder.Stored{Program: p, Standby: schema.Encoders[i].Standby})
		}
		return all, nil
	}
	names, err := d.Collections(v.Ctx)
	for i := 0; err == nil && i < len(names); i++ {
		_, err = lookup(v.Ctx, names[i], func(err error) { v.Warnf("%s", exit.Message(err)) })
	}
	return encoder.NewPool(func(ctx context.Context, name string) ([]encoder.Stored, error) {
		return lookup(ctx, name, func(error) {})
	}), err
}

// EncoderVerb returns the command line that works on the encoders of one input.
func EncoderVerb(dir, collection string, input db.EncoderInput) string {
	line := run.VerbLine("encoder", dir, collection)
	if input != db.InputText {
		line += fmt.Sprintf(" --input %s", input)
	}
	return line
}
