package command

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/encoder"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/flags"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/shell"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/source"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db"
)

// encoderOptions are the flags of encoder.
type encoderOptions struct {
	common
	set    flags.NamedList
	remove []string // modalities
	trust  []string // modalities
	input  string
}

func encoderCommand(e *env) *cobra.Command {
	o := encoderOptions{set: flags.NamedList{Kind: "NAME=COMMAND"}}
	cmd := &cobra.Command{
		Use:     "encoder DIR",
		Short:   "Store the programs that make vectors of texts and files, for search",
		GroupID: groupLearn,
		Long: usage.Prose(`
			Encoder lists the encoders of a collection, or changes them. An encoder is a
			program that makes vectors of a modality, of texts or of files: with it
			"search --text", "search --image" and "explore" need no files of vectors. The
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
			or where your system keeps the state of programs.`),
		Example: usage.Example(`
			fddhdb encoder photos.db --set image="python3 clip.py"
			fddhdb search photos.db --text "red car at night"
			fddhdb encoder photos.db --input file --set image="python3 clip.py --files"
			fddhdb encoder photos.db
			fddhdb encoder photos.db --trust image
			fddhdb encoder photos.db --remove image`),
		Args: dirArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			set, err := o.check(args[0])
			if err != nil {
				return err
			}
			open := e.lookAtCollection
			if len(set)+len(o.remove) > 0 {
				open = e.withCollection
			}
			return open(args[0], &o.common, func(_ *db.DB, c *db.Collection) error {
				return e.encoder(cmd.Context(), args[0], c, &o, set)
			})
		},
	}
	o.register(cmd)
	term.PrintsObjects(cmd)
	f := cmd.Flags()
	f.Var(&o.set, "set", "store the encoder of a modality; repeat it for each")
	f.StringArrayVar(&o.remove, "remove", nil, "forget the encoder of the modality `NAME`; repeat it for each")
	f.StringArrayVar(&o.trust, "trust", nil, "allow the encoder of the modality `NAME` to run on this machine; repeat it for each")
	f.StringVar(&o.input, "input", "text", "what the encoder reads, one a line: text, or file for paths of files")
	return cmd
}

// check refuses flags that are wrong for any collection, and returns the encoders to set.
func (o *encoderOptions) check(dir string) (set []db.Encoder, err error) {
	input := db.EncoderInput(o.input)
	if input != db.InputText && input != db.InputFile {
		return nil, exit.Usagef("--input %q: text and file are possible", o.input)
	}
	if len(o.trust) > 0 && len(o.set.List)+len(o.remove) > 0 {
		return nil, exit.Usagef("--trust is of encoders that are stored: --set trusts what it stores; give it alone")
	}
	for _, n := range o.set.List {
		words, open := shell.SplitWords(n.Value)
		switch {
		case open != 0:
			return nil, exit.Usagef("--set %s: %q ends within %q", n.Name, n.Value, open)
		case len(words) == 0:
			return nil, exit.Usagef("--set %s: the program is missing", n.Name)
		case slices.Contains(o.remove, n.Name):
			return nil, exit.Usagef("--set and --remove %s: one of both is possible", n.Name)
		}
		set = append(set, db.Encoder{Modality: n.Name, Input: input, Command: shell.Unquoted(words)})
	}
	return set, nil
}

// encoder changes the encoders of a collection, and prints them.
func (e *env) encoder(ctx context.Context, dir string, c *db.Collection, o *encoderOptions, set []db.Encoder) error {
	schema, err := c.Schema()
	if err != nil {
		return err
	}
	for i := range set {
		if _, err := source.FindModality(c.Name(), schema, "--set", set[i].Modality); err != nil {
			return err
		}
		if err := e.checkProgram(dir, &set[i]); err != nil {
			return err
		}
	}
	all, err := c.Encoders()
	if err != nil {
		return err
	}
	at := func(flag, name string) (int, error) {
		i := slices.IndexFunc(all, func(x db.Encoder) bool { return x.Modality == name && string(x.Input) == o.input })
		if i < 0 {
			return 0, exit.Usagef("%s %s: collection %q has no encoder of input %s for it: %s lists them", flag, name, c.Name(), o.input, encoderVerb(dir, c.Name(), db.InputText))
		}
		return i, nil
	}
	for _, name := range o.trust {
		i, err := at("--trust", name)
		if err == nil {
			err = encoder.Trust(dir, all[i].Command)
		}
		if err != nil {
			return err
		}
	}
	for _, name := range o.remove {
		i, err := at("--remove", name)
		if err != nil {
			return err
		}
		all = slices.Delete(all, i, i+1)
	}
	for _, x := range set {
		all = slices.DeleteFunc(all, func(other db.Encoder) bool { return other.Modality == x.Modality && other.Input == x.Input })
		all = append(all, x)
		// Trust comes first: if storing fails afterwards, the encoder is trusted but never runs.
		if err := encoder.Trust(dir, x.Command); err != nil {
			return fmt.Errorf("%w: --set %s trusts the encoder, and cannot note that", err, x.Modality)
		}
	}
	if len(set)+len(o.remove) > 0 {
		if err := c.SetEncoders(ctx, all); err != nil {
			return err
		}
		if all, err = c.Encoders(); err != nil { // in order
			return err
		}
	}
	return e.printEncoders(dir, c, o, all)
}

// checkProgram refuses a program that is not there, and warns of arguments that look like files of
// this folder where the program, which runs in another one, will not find them.
func (e *env) checkProgram(dir string, x *db.Encoder) error {
	p, err := program(dir, x)
	if err != nil {
		return err
	}
	if err := p.Find(); err != nil {
		return exit.Usagef("--set %s: %w", x.Modality, err)
	}
	for _, word := range x.Command[1:] {
		if word != "" && !filepath.IsAbs(word) && isFile(word) && !isFile(filepath.Join(p.Dir, word)) {
			whole, err := filepath.Abs(word)
			if err != nil {
				return err
			}
			e.Warnf("warning: --set %s: the program runs in %s, where there is no %s: give the whole path, %s",
				x.Modality, term.Plain(p.Dir), term.Plain(word), term.Plain(whole))
		}
	}
	return nil
}

// encoderJSON is an encoder of a list.
type encoderJSON struct {
	db.Encoder
	Trusted bool `json:"trusted"`
}

// printEncoders prints the encoders of a collection.
func (e *env) printEncoders(dir string, c *db.Collection, o *encoderOptions, all []db.Encoder) error {
	var rows [][]any
	for _, x := range all {
		trusted, err := encoder.Trusts(dir, x.Command)
		if err != nil {
			return err
		}
		if o.json {
			if err := e.PrintJSON(encoderJSON{x, trusted}); err != nil {
				return err
			}
			continue
		}
		spelled := "no"
		if trusted {
			spelled = "yes"
		}
		rows = append(rows, []any{term.TextCell(x.Modality), string(x.Input), term.TextCell(quoted(x.Command)), spelled})
	}
	switch {
	case o.json:
		return nil
	case len(all) == 0 && !e.Flat():
		e.Printf("collection %s has no encoders\n", c.Name())
		return nil
	}
	e.PrintTable([]term.Column{term.Left("modality"), term.Left("input"), term.Left("command"), term.Left("trusted")}, rows)
	return nil
}
