package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/encoder"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/flags"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/outfile"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/shell"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/source"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/files/npy"
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
	f.StringArrayVar(&o.remove, "remove", nil,
		"forget the encoder of the modality `NAME`; repeat it for each")
	f.StringArrayVar(&o.trust, "trust", nil,
		"allow the encoder of the modality `NAME` to run on this machine; repeat it for each")
	f.StringVar(&o.input, "input", "text",
		"what the encoder reads, one a line: text, or file for paths of files")
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
func (e *env) encoder(ctx context.Context, dir string, c *db.Collection, o *encoderOptions,
	set []db.Encoder) error {
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
		i := slices.IndexFunc(all,
			func(x db.Encoder) bool { return x.Modality == name && string(x.Input) == o.input })
		if i < 0 {
			return 0, exit.Usagef("%s %s: collection %q has no encoder of input %s for it: %s lists them",
				flag, name, c.Name(), o.input, encoderVerb(dir, c.Name(), db.InputText))
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
		all = slices.DeleteFunc(all,
			func(other db.Encoder) bool { return other.Modality == x.Modality && other.Input == x.Input })
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
		rows = append(rows, []any{term.TextCell(x.Modality), string(x.Input),
			term.TextCell(quoted(x.Command)), spelled})
	}
	switch {
	case o.json:
		return nil
	case len(all) == 0 && !e.Flat():
		e.Printf("collection %s has no encoders\n", c.Name())
		return nil
	}
	e.PrintTable([]term.Column{term.Left("modality"), term.Left("input"), term.Left("command"),
		term.Left("trusted")}, rows)
	return nil
}

// program returns how the encoder of a database in dir is run: in the folder that holds the
// database, from wherever it is searched.
func program(dir string, of *db.Encoder) (encoder.Program, error) {
	folder, err := encoder.Folder(dir)
	return encoder.Program{Modality: of.Modality, Command: of.Command, Dir: filepath.Dir(folder)}, err
}

// checkTrust refuses an encoder that the user has neither set nor trusted.
func checkTrust(dir, collection string, of *db.Encoder) error {
	trusts, err := encoder.Trusts(dir, of.Command)
	if err != nil || trusts {
		return err
	}
	return exit.Failedf("the encoder of %s is not run, as you have not set it here: %s; if it may run, as you, on this machine: %s --trust %s",
		of.Modality, term.Plain(quoted(of.Command)), encoderVerb(dir, collection, of.Input), of.Modality)
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

// encode makes vectors of inputs by an encoder of the database in dir. In a shell the program stays
// running for the next search.
func (e *env) encode(ctx context.Context, dir, collection string, of *db.Encoder, dim int,
	inputs []string) ([]encoder.Vector, error) {
	if err := checkTrust(dir, collection, of); err != nil {
		return nil, err
	}
	p, err := program(dir, of)
	if err != nil {
		return nil, err
	}
	if !e.session.has(dir) {
		return encoder.Run(ctx, p, dim, inputs)
	}
	running := e.session.encoder(p)
	vectors, err := running.Encode(ctx, dim, inputs)
	if err != nil && ctx.Err() != nil {
		e.session.endEncoders() // an interrupt ends the program, too
	}
	return vectors, err
}

// encoder returns the encoder of a program, which the session keeps.
func (s *session) encoder(p encoder.Program) *encoder.Encoder {
	for _, e := range s.encoders {
		if e.Modality == p.Modality && e.Dir == p.Dir && slices.Equal(e.Command, p.Command) {
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

// encodes reports whether an encoder makes the vectors of the queries.
func (o *searchOptions) encodes() bool { return len(o.texts)+len(o.images) > 0 }

// checkInputs refuses what no encoder can read.
func (o *searchOptions) checkInputs() error {
	for _, text := range o.texts {
		switch {
		case strings.TrimSpace(text) == "":
			return exit.Usagef("--text %q: words are missing", text)
		case !utf8.ValidString(text):
			return exit.Usagef("--text %q: it is not UTF-8", text)
		}
	}
	for _, file := range o.images {
		info, err := os.Stat(file)
		switch {
		case err != nil:
			return exit.Failedf("--image: %w", err)
		case !info.Mode().IsRegular():
			return exit.Usagef("--image %q: it is not a regular file", file)
		case strings.ContainsAny(file, "\r\n"):
			return exit.Usagef("--image %q: an encoder reads a path a line: rename the file", file)
		}
	}
	return nil
}

// chooseEncoder chooses the encoder of the collection for the queries, and with it --from.
func (o *searchOptions) chooseEncoder(c *db.Collection) error {
	flag, input := "--text", db.InputText
	if len(o.images) > 0 {
		flag, input = "--image", db.InputFile
	}
	schema, err := c.Schema()
	if err != nil {
		return err
	}
	if o.from != "" {
		if _, err := source.FindModality(c.Name(), schema, "--from", o.from); err != nil {
			return err
		}
	}
	all, err := c.Encoders()
	if err != nil {
		return err
	}
	var names []string
	for i, e := range all {
		if e.Input == input && (o.from == "" || o.from == e.Modality) {
			o.encoder = &all[i]
			names = append(names, e.Modality)
		}
	}
	switch {
	case len(schema.Modalities) == 0:
		return exit.Usagef("%s: the items of collection %q bring their codes, which no encoder makes: search by --code or --key", flag, c.Name())
	case len(names) == 0:
		at := o.from
		if at == "" {
			at = schema.Modalities[0].Name
			return exit.Usagef("%s: collection %q has no encoder of input %s: %s --set %s=COMMAND stores one",
				flag, c.Name(), input, encoderVerb(o.dir, c.Name(), input), at)
		}
		return exit.Usagef("%s: modality %q has no encoder of input %s: %s --set %s=COMMAND stores one", flag,
			at, input, encoderVerb(o.dir, c.Name(), input), at)
	case len(names) > 1:
		return exit.Usagef("%s: several modalities have an encoder of input %s, %s: say which with --from NAME", flag, input, strings.Join(names, ", "))
	}
	o.from = o.encoder.Modality
	return nil
}

// queryEncoder answers the queries by the vectors that the encoder makes, all at once.
func (e *env) queryEncoder(ctx context.Context, o *searchOptions, m db.Modality,
	answer func(queryName, db.Query) error) (err error) {
	inputs := o.texts
	if len(o.images) > 0 {
		inputs = make([]string, len(o.images))
		for i, file := range o.images { // the program runs in another folder
			if inputs[i], err = filepath.Abs(file); err != nil {
				return err
			}
		}
	}
	vectors, err := e.encode(ctx, o.dir, o.collection, o.encoder, m.Dim, inputs)
	if err != nil {
		return err
	}
	for i, name := range append(o.texts, o.images...) {
		if err := answer(name, db.Query{From: m.Name, Vector: vectors[i].Dense,
			Sparse: vectors[i].Sparse}); err != nil {
			return err
		}
	}
	return nil
}

// errEnough ends the reading of queries.
var errEnough = errors.New("enough")

// queryStdin answers the queries of the standard input.
func (e *env) queryStdin(o *searchOptions, m db.Modality, answer func(queryName, db.Query) error) error {
	if e.session != nil {
		return exit.Usagef("--vectors -: the standard input is that of the shell: give a file, or --vector")
	}
	rows := 0
	err := source.EachQuery(m, e.stdin, func(row int, q db.Query) error {
		if rows = row + 1; o.hasRow && row != o.row {
			return nil
		}
		if err := answer(row, q); err != nil {
			return exit.AtRow(err, "standard input", row)
		}
		if err := e.Stdout.Flush(); err != nil || !o.hasRow {
			return err
		}
		return errEnough
	})
	switch {
	case err == errEnough:
		return nil
	case err == nil && o.hasRow:
		return exit.Usagef("--row %d: standard input has %d rows, counted from 0", o.row, rows)
	}
	return err
}

func encodeCommand(e *env) *cobra.Command {
	var o common
	var from, out string
	var vectors []string
	cmd := &cobra.Command{
		Use:     "encode DIR --from NAME --vectors FILE --out FILE.npy",
		Short:   "Make codes of vectors without storing them",
		GroupID: groupLearn,
		Long: usage.Prose(`
			Encode writes the code that each row of a file of vectors has as a query:
			uint8, a row a vector and bits/8 columns, bit j of a code being bit j mod 8 of
			byte j/8, as numpy.packbits(..., bitorder='little') packs them.

			With --vectors NAME=FILE, once or several times, row i of all files is one item. Its
			code is the one that it would get if it were stored without labels.`),
		Example: usage.Example(`
			fddhdb encode wiki.db --from text --vectors query_text.npy --out codes.npy
			fddhdb encode wiki.db --vectors image=query_image.npy \
			    --vectors text=query_text.npy --out codes.npy`),
		Args: dirArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			list, err := queryFiles(from, vectors)
			switch {
			case err != nil:
				return err
			case out == "":
				return exit.Usagef("--out FILE.npy is missing: where to write the codes")
			}
			if err := checkNPY("--out", out); err != nil {
				return err
			}
			return e.lookAtCollection(args[0], &o, func(_ *db.DB, c *db.Collection) error {
				bar := e.NewProgress()
				defer bar.End()
				codes, bits, err := encodeFiles(cmd.Context(), c, from, list, out, bar)
				bar.End()
				if err != nil {
					return err
				}
				if o.json {
					return e.PrintJSON(map[string]int{"codes": codes, "bits": bits})
				}
				e.Printf("wrote %s of %d bits to %s\n", term.Plural(codes, "code", "codes"), bits, out)
				return nil
			})
		},
	}
	o.register(cmd)
	o.registerSpace(cmd)
	f := cmd.Flags()
	f.StringVar(&from, "from", "", "modality `NAME` of the only file of vectors")
	f.StringArrayVar(&vectors, "vectors", nil,
		"vectors, a `FILE` with --from, else NAME=FILE; repeat it for each")
	f.StringVar(&out, "out", "", "where to write the codes, a `FILE`.npy")
	return cmd
}

// queryFiles returns the files of the flags, by modality.
func queryFiles(from string, vectors []string) ([]flags.Named, error) {
	if len(vectors) == 0 {
		return nil, exit.Usagef("encode needs vectors: --from NAME --vectors FILE, or --vectors NAME=FILE")
	}
	if from != "" {
		if len(vectors) > 1 {
			return nil, exit.Usagef("--from goes with one --vectors FILE; for several write --vectors NAME=FILE each")
		}
		return []flags.Named{{Name: from, Value: vectors[0]}}, nil
	}
	list := flags.NamedList{Kind: "NAME=FILE"}
	for _, v := range vectors {
		if err := list.Set(v); err != nil {
			return nil, exit.Usagef("--vectors %q: %w, or --from NAME for one file", v, err)
		}
	}
	return list.List, nil
}

// checkNPY refuses a name under which a .npy would be mistaken for another format.
func checkNPY(flag, path string) error {
	if strings.EqualFold(filepath.Ext(path), ".npy") {
		return nil
	}
	return exit.Usagef("%s %s: a .npy file is written, not %s", flag, path, term.FileKind(path))
}

// encodeRows is the number of rows that are encoded at a time.
const encodeRows = 1024

// encodeFiles writes the codes of rows: of row i of all files together, or of the rows of the only file as
// queries by modality from, if that is given.
func encodeFiles(ctx context.Context, c *db.Collection, from string, list []flags.Named, out string,
	bar *term.Progress) (rows, bits int, err error) {
	schema, err := c.Schema()
	if err != nil {
		return 0, 0, err
	}
	stats, err := c.Stats()
	if err != nil {
		return 0, 0, err
	}
	var sources source.Together
	var vectors []*source.Vectors
	defer func() { sources.Close() }()
	for _, v := range list {
		m, err := source.FindModality(c.Name(), schema, "--vectors", v.Name)
		if err != nil {
			return 0, 0, err
		}
		s, err := source.OpenVectors(v.Name, v.Value)
		if err != nil {
			return 0, 0, err
		}
		sources, vectors = append(sources, s), append(vectors, s)
		if err := s.CheckDim(m); err != nil {
			return 0, 0, err
		}
	}
	if err := sources.SameRows(); err != nil {
		return 0, 0, err
	}
	if !stats.Trained {
		return 0, 0, untrained(c)
	}
	rows, bits = sources.Rows(), stats.Bits
	var set outfile.Set
	defer set.Discard()
	f, err := set.Create(out)
	if err != nil {
		return 0, 0, err
	}
	w, err := npy.NewWriter[uint8](f, rows, bits/8)
	if err != nil {
		return 0, 0, err
	}
	for done := 0; done < rows; {
		bar.Report("encoding", int64(done), int64(rows))
		block, err := readBlock(vectors, min(encodeRows, rows-done))
		if err != nil {
			return 0, 0, err
		}
		codes, err := encodeBlock(ctx, c, from, paths(sources), done, block)
		if err != nil {
			return 0, 0, err
		}
		if err := w.Write(codes); err != nil {
			return 0, 0, outfile.Error(out, err)
		}
		done += len(block)
	}
	if err := w.Close(); err != nil {
		return 0, 0, outfile.Error(out, err)
	}
	return rows, bits, set.Commit()
}

// paths returns the names of files.
func paths(sources []source.Source) string {
	var list []string
	for _, s := range sources {
		list = append(list, s.Path())
	}
	return strings.Join(list, ", ")
}

// readBlock reads the next n rows of all files.
func readBlock(sources []*source.Vectors, n int) ([]db.Item, error) {
	block := make([]db.Item, n)
	for i := range block {
		block[i] = source.NewRow()
		for _, s := range sources {
			if err := s.Read(); err != nil {
				return nil, err
			}
			if dense, sparse := s.Copy(); sparse != nil {
				block[i].Sparse[s.Modality] = *sparse
			} else {
				block[i].Vectors[s.Modality] = dense
			}
		}
	}
	return block, nil
}

// encodeBlock encodes rows on all cores. It returns their codes one after the other.
// first is the number of the first row, and files their files, for errors.
func encodeBlock(ctx context.Context, c *db.Collection, from, files string, first int,
	block []db.Item) ([]byte, error) {
	codes := make([][]byte, len(block))
	errs := make([]error, len(block))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(block)) {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(block) || ctx.Err() != nil {
					return
				}
				if from != "" {
					codes[i], _, errs[i] = c.EncodeQuery(ctx, queryOf(from, &block[i]))
				} else {
					codes[i], _, errs[i] = c.Encode(&block[i])
				}
			}
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var out []byte
	for i, err := range errs {
		if err != nil {
			return nil, exit.AtRow(err, files, first+i)
		}
		out = append(out, codes[i]...)
	}
	return out, nil
}

// queryOf returns the query by the vector of a row.
func queryOf(from string, row *db.Item) db.Query {
	q := db.Query{From: from, Vector: row.Vectors[from]}
	if x, ok := row.Sparse[from]; ok {
		q.Sparse = &x
	}
	return q
}
