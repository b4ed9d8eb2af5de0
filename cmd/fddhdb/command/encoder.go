package command

import (
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
	v := e.verb(groupLearn, "encoder DIR", "Store the programs that make vectors of texts and files, for search",
		`
		Encoder lists the encoders of a collection, or changes them. An encoder is a
		program that makes vectors of a modality, of texts or of files: with it
		"search --text", "search --picture" and "explore" need no files of vectors. The
		database keeps its command, not the program, and so do backups and copies.

		  --set NAME=COMMAND  store the encoder of the modality NAME, or replace it
		  --remove NAME       forget it
		  --trust NAME        allow the one that is stored to run
		Each is about encoders of --input: text, or file for one that reads paths of
		files. A modality may have one of both.

		The program is started with the first query. It reads a text, or a path, a line,
		and prints a vector of the modality, a line, flushed; it may be sent several
		lines before it answers. A vector is numbers with commas or blanks between, an
		array of JSON, or {"i":[3,17],"v":[1.5,2]}; {"error":"..."} says why there is
		none. COMMAND is cut into words at blanks, but for quotes, and no shell runs it.
		It runs in the folder that holds the database, where relative paths lead from.
		It has five minutes for its first line, 30 seconds for each after it, and is
		ended with the verb, or with the shell. A fddhdb that the program itself runs
		starts no encoder: there search by --vector or --vectors.

		An encoder runs with your rights. So one that came with the database, from another
		machine or user, in a backup or a copy, does not run until you allow it: look at its
		command, then --trust it. Setting it here allows it. That holds for this command and
		this folder, and for you. The file trusted-encoders has it, in ~/.local/state/fddhdb
		or where your system keeps the state of programs.`, `
		fddhdb encoder photos.db --set image="python3 clip.py"
		fddhdb search photos.db --text "red car at night"
		fddhdb encoder photos.db --input file --set image="python3 clip.py --files"
		fddhdb encoder photos.db
		fddhdb encoder photos.db --trust image
		fddhdb encoder photos.db --remove image`).onCollection().printsLines()
	sets := flags.NamedList{Kind: "NAME=COMMAND"}
	var remove, trust []string // modalities
	var input string
	v.f.Var(&sets, "set", "store the encoder of a modality; repeat it for each")
	v.f.StringArrayVar(&remove, "remove", nil,
		"forget the encoder of the modality `NAME`; repeat it for each")
	v.f.StringArrayVar(&trust, "trust", nil,
		"allow the encoder of the modality `NAME` to run on this machine; repeat it for each")
	v.f.StringVar(&input, "input", "text",
		"what the encoder reads, one a line: text, or file for paths of files")
	return v.does(func() error {
		changes := len(sets.List)+len(remove) > 0
		switch {
		case input != string(db.InputText) && input != string(db.InputFile):
			return exit.Usagef("--input %q: text and file are possible", input)
		case len(trust) > 0 && changes:
			return exit.Usagef("--trust is of encoders that are stored: --set trusts what it stores; give it alone")
		}
		var set []db.Encoder
		for _, n := range sets.List {
			words, open := shell.SplitWords(n.Value)
			switch {
			case open != 0:
				return exit.Usagef("--set %s: %q ends within %q", n.Name, n.Value, open)
			case len(words) == 0:
				return exit.Usagef("--set %s: the program is missing", n.Name)
			case slices.Contains(remove, n.Name):
				return exit.Usagef("--set and --remove %s: one of both is possible", n.Name)
			}
			set = append(set, db.Encoder{Modality: n.Name, Input: db.EncoderInput(input),
				Command: shell.Unquoted(words)})
		}
		open := v.look
		if changes {
			open = v.change
		}
		return open(func() error {
			all, err := v.alterEncoders(input, set, remove, trust)
			if err == nil && changes {
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

// alterEncoders returns the encoders that the collection is to have, not nil, and notes which are trusted.
func (v *verb) alterEncoders(input string, set []db.Encoder, remove, trust []string) ([]db.Encoder, error) {
	for i := range set {
		if _, err := v.modality("--set", set[i].Modality); err != nil {
			return nil, err
		}
		if err := v.checkProgram(&set[i]); err != nil {
			return nil, err
		}
	}
	all := append([]db.Encoder{}, v.schema.Encoders...)
	of := func(name string) func(db.Encoder) bool {
		return func(x db.Encoder) bool { return x.Modality == name && string(x.Input) == input }
	}
	for _, name := range append(trust, remove...) {
		i := slices.IndexFunc(all, of(name))
		switch {
		case i < 0:
			return nil, exit.Usagef("--trust or --remove %s: collection %q has no encoder of input %s for it: %s lists them",
				name, v.c.Name(), input, encoderVerb(v.dir, v.c.Name(), db.InputText))
		case len(remove) > 0:
			all = slices.Delete(all, i, i+1)
		default:
			if err := encoder.Trust(v.dir, all[i].Command); err != nil {
				return nil, err
			}
		}
	}
	for _, x := range set {
		all = append(slices.DeleteFunc(all, of(x.Modality)), x)
		// Trust comes first: if storing fails afterwards, the encoder is trusted but never runs.
		if err := encoder.Trust(v.dir, x.Command); err != nil {
			return nil, fmt.Errorf("%w: --set %s trusts the encoder, and cannot note that", err, x.Modality)
		}
	}
	return all, nil
}

// checkProgram refuses a program that is not there, and warns of arguments that look like files of
// this folder where the program, which runs in another one, will not find them.
func (v *verb) checkProgram(x *db.Encoder) error {
	p, err := program(v.dir, x)
	if err != nil {
		return err
	}
	if err := p.Find(); err != nil {
		return exit.Usagef("--set %s: %w", x.Modality, err)
	}
	for _, word := range x.Command[1:] {
		if word != "" && !filepath.IsAbs(word) && isFile(word) && !isFile(filepath.Join(p.Dir, word)) {
			v.Warnf("warning: --set %s: the program runs in %s, where there is no %s: give the whole path",
				x.Modality, term.Plain(p.Dir), term.Plain(word))
		}
	}
	return nil
}

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
	for _, x := range all {
		trusted, err := encoder.Trusts(v.dir, x.Command)
		if err != nil {
			return err
		}
		kind := (&encoder.Program{Command: x.Command}).Kind()
		forms = append(forms, encoderForm{x, kind, trusted})
		rows = append(rows, []any{term.TextCell(x.Modality), string(x.Input), kind,
			term.TextCell(quoted(x.Command)),
			map[bool]string{true: "yes", false: "no"}[trusted]})
	}
	return list(v, forms, func() {
		if len(all) == 0 && !v.Flat() {
			v.Printf("collection %s has no encoders\n", v.c.Name())
			return
		}
		v.PrintTable([]term.Column{term.Left("modality"), term.Left("input"), term.Left("kind"),
			term.Left("command"), term.Left("trusted")}, rows)
	})
}

// program returns how the encoder of a database in dir is run: in the folder that holds the
// database, from wherever it is searched.
func program(dir string, of *db.Encoder) (encoder.Program, error) {
	folder, err := encoder.Folder(dir)
	return encoder.Program{Modality: of.Modality, Input: of.Input, Command: of.Command,
		Dir: filepath.Dir(folder)}, err
}

// trusted is program for an encoder that is to run. It refuses one that the user has neither set nor trusted.
func trusted(dir, collection string, of *db.Encoder) (encoder.Program, error) {
	trusts, err := encoder.Trusts(dir, of.Command)
	if err == nil && !trusts {
		err = exit.Failedf("the encoder of %s is not run, as you have not set it here: %s; if it may run, as you, on this machine: %s --trust %s",
			of.Modality, term.Plain(quoted(of.Command)), encoderVerb(dir, collection, of.Input), of.Modality)
	}
	if err != nil {
		return encoder.Program{}, err
	}
	return program(dir, of)
}

// encoders returns the encoders of texts and files that the collections have and the user trusts. It prints a
// warning for each of the others. The caller closes the pool.
func (v *verb) encoders(dir string, d api.Database) (*encoder.Pool, error) {
	names, err := d.Collections(v.ctx)
	if err != nil {
		return nil, err
	}
	var all []encoder.Stored
	for _, name := range names {
		c, err := d.Collection(v.ctx, name)
		if err != nil {
			return nil, err
		}
		schema, err := c.Schema(v.ctx)
		if err != nil {
			return nil, err
		}
		for i := range schema.Encoders {
			stored := &schema.Encoders[i]
			p, err := trusted(dir, name, stored)
			if err != nil {
				v.Warnf("%s", exit.Message(err))
				continue
			}
			all = append(all, encoder.Stored{Program: p, Collection: name})
		}
	}
	return encoder.NewPool(all), nil
}

// quoted returns words as a line of the shell.
func quoted(words []string) string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = shell.QuoteWord(w)
	}
	return strings.Join(all, " ")
}

// encoderVerb returns the command line that works on the encoders of one input.
func encoderVerb(dir, collection string, input db.EncoderInput) string {
	line := "fddhdb encoder " + dir
	if collection != "main" {
		line += " --collection " + collection
	}
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
		if e.Input == input && (o.from == "" || o.from == e.Modality) {
			chosen = &o.schema.Encoders[i]
			names = append(names, e.Modality)
		}
	}
	switch {
	case o.turns:
		return nil, exit.Usagef("--turns: collection %q compares vectors, and only codes by pdq have turns", o.c.Name())
	case len(names) == 0:
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
			slices.Equal(e.Command, p.Command) {
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
