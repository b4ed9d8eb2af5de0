package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/encoder"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/flags"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/shell"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
)

func encoderCommand(e *env) *cobra.Command {
	v := e.verb(groupLearn, "encoder DIR", "Store what makes vectors of texts and files, for search",
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
		fddhdb search notes.db --text "red car at night"`).onCollection().printsLines()
	sets := flags.NamedList{Kind: "NAME=COMMAND"}
	var remove, trust []string // modalities
	var input string
	var replace bool
	v.f.Var(&sets, "set", "store the encoder of a modality; repeat it for each")
	v.f.StringArrayVar(&remove, "remove", nil,
		"forget the encoder of the modality `NAME`; repeat it for each")
	v.f.StringArrayVar(&trust, "trust", nil,
		"allow the encoder of the modality `NAME` to run on this machine; repeat it for each")
	v.f.BoolVar(&replace, "replace", false,
		"with --set: also where items have vectors of another encoder")
	v.f.StringVar(&input, "input", "text",
		"what the encoder reads, one a line: text, or file for paths of files")
	return v.does(func() error {
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
		if err := v.identify(set); err != nil {
			return err
		}
		open := v.look
		if changes {
			open = v.change
		}
		return open(func() error {
			all, err := v.alterEncoders(input, set, replace, remove, trust)
			if err == nil && len(all) > 0 {
				err = v.c.Alter(v.ctx, db.Alteration{Encoders: all})
			}
			if err != nil {
				return err
			}
			schema, err := v.c.Schema(v.ctx) // has them in order
			if err != nil {
				return err
			}
			return v.listEncoders(schema.Encoders)
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
func (v *verb) newEncoders(flag, value, modality string, input db.EncoderInput) (all []db.Encoder, dim int,
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
		if err = v.checkProgram(flag, &all[i]); err != nil {
			return nil, 0, err
		}
		p, err := program(v.dir, &all[i])
		if err == nil {
			all[i].Fingerprint, dim, err = encoder.Identify(v.ctx, p, dim)
		}
		if err == nil {
			err = encoder.Trust(v.dir, command)
		}
		if err != nil {
			return nil, 0, err
		}
	}
	return all, dim, nil
}

// identify gives encoders that are to be stored their fingerprints. It runs each while the database is
// closed: that may take minutes.
func (v *verb) identify(set []db.Encoder) error {
	if len(set) == 0 {
		return nil
	}
	dims := make([]int, len(set))
	err := v.look(func() error {
		for i := range set {
			m, err := v.modality("--set", set[i].Modality)
			if err != nil {
				return err
			}
			if err := v.checkProgram("--set "+set[i].Modality, &set[i]); err != nil {
				return err
			}
			dims[i] = m.Dim
		}
		return nil
	})
	for i := range set {
		var p encoder.Program
		if err == nil {
			p, err = program(v.dir, &set[i])
		}
		if err == nil {
			set[i].Fingerprint, _, err = encoder.Identify(v.ctx, p, dims[i])
		}
	}
	return err
}

// alterEncoders returns the encoders to set, and to remove, and notes which are trusted.
func (v *verb) alterEncoders(input string, set []db.Encoder, replace bool,
	remove, trust []string) (all []db.Encoder, err error) {
	old := v.schema.Encoders
	of := func(name string) func(db.Encoder) bool {
		return func(x db.Encoder) bool { return x.Modality == name && string(x.Input) == input }
	}
	for _, name := range append(trust, remove...) {
		i := slices.IndexFunc(old, of(name))
		switch {
		case i < 0:
			return nil, exit.Usagef("--trust or --remove %s: collection %q has no encoder of input %s for it: %s lists them",
				name, v.c.Name(), input, encoderVerb(v.dir, v.c.Name(), db.InputText))
		case len(remove) > 0:
			all = append(all, db.Encoder{Modality: name, Input: old[i].Input})
		default:
			if err := encoder.Trust(v.dir, old[i].Command); err != nil {
				return nil, err
			}
		}
	}
	for _, x := range set {
		if i := slices.IndexFunc(old, of(x.Modality)); i >= 0 && !replace {
			if err := v.checkSame(&old[i], &x); err != nil {
				return nil, err
			}
		}
		all = append(all, x)
		// Trust comes first: if storing fails afterwards, the encoder is trusted but never runs.
		if err := encoder.Trust(v.dir, x.Command); err != nil {
			return nil, fmt.Errorf("%w: --set %s trusts the encoder, and cannot note that", err, x.Modality)
		}
	}
	return all, nil
}

// checkSame refuses an encoder that makes other vectors than the one that is stored, if items have vectors of
// that.
func (v *verb) checkSame(old, x *db.Encoder) error {
	likeness := encoder.Likeness(old.Fingerprint, x.Fingerprint)
	if old.Fingerprint == nil || likeness >= encoder.LeastLikeness {
		return nil
	}
	items, err := v.c.Count(v.ctx, `has("`+strings.ReplaceAll(x.Modality, `"`, `""`)+`")`)
	if err == nil && items > 0 {
		err = exit.Failedf("--set %s: %s makes other vectors than the stored encoder, %s: the likeness is %.2f, and %.2f is the least; %d items have vectors of the stored one: to store this one, give --replace, and make their vectors again",
			x.Modality, term.Plain(quoted(x.Command)), term.Plain(quoted(old.Command)), likeness,
			encoder.LeastLikeness, items)
	}
	return err
}

// checkProgram refuses a program that is not there, and warns of arguments that look like files of
// this folder where the program, which runs in another one, will not find them.
func (v *verb) checkProgram(flag string, x *db.Encoder) error {
	p, err := program(v.dir, x)
	if err != nil {
		return err
	}
	if err := p.Find(); err != nil {
		return exit.Usagef("%s: %w", flag, err)
	}
	for _, word := range x.Command[1:] {
		if word != "" && !filepath.IsAbs(word) && isFile(word) && !isFile(filepath.Join(p.Dir, word)) {
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
func (v *verb) listEncoders(all []db.Encoder) error {
	var forms []encoderForm
	var rows [][]any
	columns := []term.Column{term.Left("modality"), term.Left("input"), term.Left("kind"),
		term.Left("command"), term.Left("trusted")}
	if slices.ContainsFunc(all, func(x db.Encoder) bool { return x.Standby }) {
		columns = append(columns, term.Left("standby"))
	}
	for _, x := range all {
		trusted, err := encoder.Trusts(v.dir, x.Command)
		if err != nil {
			return err
		}
		kind := (&encoder.Program{Command: x.Command}).Kind()
		forms = append(forms, encoderForm{x, kind, trusted})
		rows = append(rows, []any{term.TextCell(x.Modality), string(x.Input), kind,
			term.TextCell(quoted(x.Command)),
			yesNo[trusted], yesNo[x.Standby]}[:len(columns)])
	}
	return list(v, forms, func() {
		if len(all) == 0 && !v.Flat() {
			v.Printf("collection %s has no encoders\n", v.c.Name())
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
	if p.Dir = filepath.Dir(folder); isURL(dir) && err == nil {
		p.Dir, err = os.Getwd()
	}
	return p, err
}

// trusted is program for an encoder that is to run. It refuses one that the user has neither set nor trusted.
func trusted(dir, collection string, of *db.Encoder) (encoder.Program, error) {
	p, err := program(dir, of)
	if err != nil {
		return p, err
	}
	trusts, err := encoder.Trusts(dir, of.Command)
	if err == nil && !trusts {
		err = exit.Failedf("the encoder of %s is not run, as you have not set it here: %s; if it may %s: %s --trust %s",
			of.Modality, term.Plain(quoted(of.Command)), p.May(),
			encoderVerb(dir, collection, of.Input), of.Modality)
	}
	return p, err
}

// encoders returns the encoders of texts and files that the collections have and the user trusts, now and
// when they are asked for. It prints a warning for each of the others. The caller closes the pool.
func (v *verb) encoders(dir string, d api.Database) (*encoder.Pool, error) {
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
			p, err := trusted(dir, name, &schema.Encoders[i])
			if err != nil {
				refused(err)
				continue
			}
			all = append(all, encoder.Stored{Program: p, Standby: schema.Encoders[i].Standby})
		}
		return all, nil
	}
	names, err := d.Collections(v.ctx)
	for i := 0; err == nil && i < len(names); i++ {
		_, err = lookup(v.ctx, names[i], func(err error) { v.Warnf("%s", exit.Message(err)) })
	}
	return encoder.NewPool(func(ctx context.Context, name string) ([]encoder.Stored, error) {
		return lookup(ctx, name, func(error) {})
	}), err
}

// quoted returns words as a line of the shell.
func quoted(words []string) string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = shell.QuoteWord(w)
	}
	return strings.Join(all, " ")
}

// verbLine returns the beginning of the command line of a verb that works on a collection.
func verbLine(verb, dir, collection string) string {
	line := "fddhdb " + verb + " " + dir
	if collection != "main" {
		line += " --collection " + collection
	}
	return line
}

// encoderVerb returns the command line that works on the encoders of one input.
func encoderVerb(dir, collection string, input db.EncoderInput) string {
	line := verbLine("encoder", dir, collection)
	if input != db.InputText {
		line += fmt.Sprintf(" --input %s", input)
	}
	return line
}

// checkInputs refuses what no encoder can read.
func checkInputs(texts, files []string) error {
	for _, text := range texts {
		if strings.TrimSpace(text) == "" || !utf8.ValidString(text) {
			return exit.Usagef("--text %q: words in UTF-8 are expected", text)
		}
	}
	for _, file := range files {
		info, err := os.Stat(file)
		switch {
		case err != nil:
			return exit.Failedf("--picture: %w", err)
		case !info.Mode().IsRegular():
			return exit.Usagef("--picture %q: it is not a regular file", file)
		case strings.ContainsAny(file, "\r\n"):
			return exit.Usagef("--picture %q: an encoder reads a path a line: rename the file", file)
		}
	}
	return nil
}

// chooseEncoder chooses the encoder of the collection for the queries, and with it --from.
func (o *searching) chooseEncoder() (chosen *db.Encoder, err error) {
	flag, input := "--text", db.InputText
	if len(o.picture) > 0 {
		flag, input = "--picture", db.InputFile
	}
	if o.at != nil {
		return nil, exit.Failedf("%s: %s runs no encoders: search by --vector or --vectors: %w", flag, o.at.Program,
			errors.ErrUnsupported)
	}
	if o.from != "" {
		if _, err := o.modality("--from", o.from); err != nil {
			return nil, err
		}
	}
	var names []string
	for i, e := range o.schema.Encoders {
		if e.Input == input && (o.from == "" && !e.Standby || o.from == e.Modality) {
			chosen = &o.schema.Encoders[i]
			names = append(names, e.Modality)
		}
	}
	switch {
	case o.turns:
		return nil, exit.Usagef("--turns: collection %q compares vectors, and only codes by pdq have turns", o.c.Name())
	case len(names) == 0:
		if len(o.texts) == 1 && o.from == "" {
			if o.labels = api.CodeOfWords(o.ctx, o.c, o.texts[0]); o.labels != nil {
				return nil, nil
			}
		}
		at := o.from
		if at == "" {
			at = o.schema.Modalities[0].Name
		}
		return nil, exit.Usagef("%s: collection %q has no encoder of input %s: %s --set %s=COMMAND stores one",
			flag, o.c.Name(), input, encoderVerb(o.dir, o.c.Name(), input), at)
	case len(names) > 1:
		return nil, exit.Usagef("%s: several modalities have an encoder of input %s, %s: say which with --from NAME", flag, input, strings.Join(names, ", "))
	}
	o.from = chosen.Modality
	return chosen, nil
}

// eachEncoded calls f with the vectors that an encoder makes of inputs, all at once. In a shell the program
// stays running for the next search.
func (v *verb) eachEncoded(of *db.Encoder, inputs []string, m db.Modality, f func(queryName,
	db.Query) error) error {
	p, err := trusted(v.dir, v.c.Name(), of)
	if err != nil {
		return err
	}
	lines := slices.Clone(inputs)
	for i, file := range inputs { // the program runs in another folder
		if of.Input != db.InputFile {
			break
		}
		if lines[i], err = filepath.Abs(file); err != nil {
			return err
		}
	}
	var vectors []encoder.Vector
	if v.session.has(v.dir) {
		vectors, err = v.session.encoder(p).Encode(v.ctx, m.Dim, lines)
		if err != nil && v.ctx.Err() != nil {
			v.session.endEncoders() // an interrupt ends the program, too
		}
	} else {
		vectors, err = encoder.Run(v.ctx, p, m.Dim, lines)
	}
	for i := 0; err == nil && i < len(inputs); i++ {
		err = f(inputs[i], db.Query{From: m.Name, Vector: vectors[i].Dense, Sparse: vectors[i].Sparse})
	}
	return err
}

// encoder returns the encoder of a program, which the session keeps.
func (s *session) encoder(p encoder.Program) *encoder.Encoder {
	for _, e := range s.encoders {
		if e.Modality == p.Modality && e.Input == p.Input && e.Dir == p.Dir &&
			slices.Equal(e.Command, p.Command) && slices.Equal(e.Fingerprint, p.Fingerprint) {
			return e
		}
	}
	s.encoders = append(s.encoders, encoder.New(p))
	return s.encoders[len(s.encoders)-1]
}

// endEncoders ends the programs that the session keeps.
func (s *session) endEncoders() {
	for _, e := range s.encoders {
		e.Close()
	}
	s.encoders = nil
}
