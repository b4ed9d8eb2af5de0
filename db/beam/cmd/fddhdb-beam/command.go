package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	sdk "github.com/apache/beam/sdks/v2/go/pkg/beam"
	beamlog "github.com/apache/beam/sdks/v2/go/pkg/beam/log"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/flags"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/source"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db/beam"
	"github.com/fddhdb/fddhdb/db/importer"
)

// shownFlags are those of Beam's flags that help shows, and what it says of them.
var shownFlags = map[string]string{
	"runner":             "the `NAME` of a runner of Beam (default prism)",
	"endpoint":           "the `HOST:PORT` of the runner's job service (default: Prism, in this process)",
	"environment_type":   "`WHERE` workers run: LOOPBACK, in this process, PROCESS or DOCKER",
	"environment_config": "`JSON` for PROCESS: {\"command\":\"/path/to/fddhdb-beam\"}; an image for DOCKER",
	"worker_binary":      "the `FILE` that workers run: this program, for their platform",
	"parallelism":        "`N` tasks at a time, for runners that ask for it",
}

func command() *cobra.Command {
	root := &cobra.Command{
		Use:   "fddhdb-beam",
		Short: "Models, codes and databases from files of any size, by Apache Beam",
		Long: strings.TrimSpace(`
Fddhdb-beam learns models, encodes items and builds databases from more files
than one process can read, with Apache Beam. What it makes is what fddhdb would
make of the same items, to the last bit of a model.

Without flags of Beam everything runs in this process, by Beam's runner Prism.
docs/SCALE.md says how it runs on others.`),
		SilenceErrors: true, SilenceUsage: true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return exit.Usagef("there is no verb %q: train, encode and build are possible",
					args[0])
			}
			return nil
		},
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return exit.Usagef("%w: %s --help", err,
			cmd.CommandPath())
	})
	beams := pflag.NewFlagSet("beam", pflag.ContinueOnError)
	beams.AddGoFlagSet(flag.CommandLine)
	beams.VisitAll(func(f *pflag.Flag) {
		usage, shown := shownFlags[f.Name]
		f.Hidden = !shown
		if shown {
			f.Usage, f.DefValue = usage, ""
		}
	})
	root.PersistentFlags().AddFlagSet(beams)
	root.AddCommand(trainCommand(), encodeCommand(), buildCommand())
	return root
}

// quiet lets Beam log to stderr from a level on: debug, info, warn or error.
func quiet(level string) {
	beamlog.LogLevel, beamlog.LogKind = level, "text"
	beamlog.SetLogger(&beamlog.Structural{})
}

// An inputFlags has the flags of an input.
type inputFlags struct {
	in                     beam.Input
	vectors, vectorColumns flags.NamedList
	fieldColumns           []string
}

func (o *inputFlags) register(f *pflag.FlagSet) {
	o.vectors.Kind, o.vectorColumns.Kind = "NAME=GLOB", "MODALITY=COLUMN"
	f.Var(&o.vectors, "vectors", "vectors of a modality, in the files of a glob; repeat it for each")
	f.StringVar(&o.in.Codes, "codes", "",
		"packed codes, .npy files of a `GLOB`, of collections that are given their codes")
	f.StringVar(&o.in.Labels, "labels", "", "labels, the files of a `GLOB`: matrices, classes or text")
	f.StringVar(&o.in.LabelNames, "label-names", "", "names of the labels, a text `FILE`")
	f.StringVar(&o.in.Keys, "keys", "", "keys of the items, text files of a `GLOB`")
	f.StringVar(&o.in.Fields, "fields", "", "fields, .csv files of a `GLOB` with a header NAME:TYPE,...")
	f.StringVar(&o.in.Items, "items", "", "whole items, .jsonl, .csv or .parquet files of a `GLOB`")
	f.StringVar(&o.in.Mapping.Key, "key-column", "", "the `COLUMN` of --items that has the keys")
	f.StringArrayVar(&o.in.Mapping.Labels, "label-column", nil,
		"a `COLUMN` of labels, or several with a *; repeat it for each")
	f.StringVar(&o.in.Mapping.Separator, "label-separator", "",
		"the `TEXT` between several labels in a cell or string (default: it is one label)")
	f.Var(&o.vectorColumns, "vector-column", "the vectors of a modality; repeat it for each")
	f.StringArrayVar(&o.fieldColumns, "field-column", nil,
		"a `COLUMN` that becomes a field, or FIELD=COLUMN; repeat it for each")
	f.StringVar(&o.in.Backups, "backups", "",
		"items of the newest backups: a repository, or folders of a `GLOB`")
	f.StringVar(&o.in.Collection, "collection", "main",
		"the collection `NAME` of --backups, and of what is built")
	f.Var(flags.OnError{Skip: &o.in.Skip}, "on-error",
		"what a bad row does: stop, and nothing is made, or skip")
}

// input returns the input that the flags name.
func (o *inputFlags) input() *beam.Input {
	o.in.Vectors, o.in.Mapping.Vectors = nil, nil
	for _, v := range o.vectors.List {
		o.in.Vectors = append(o.in.Vectors, beam.NamedGlob{Modality: v.Name, Glob: v.Value})
	}
	for _, v := range o.vectorColumns.List {
		o.in.Mapping.Vectors = append(o.in.Mapping.Vectors, importer.Mapped{Name: v.Name, Column: v.Value})
	}
	o.in.Mapping.Fields = source.FieldColumns(o.fieldColumns)
	return &o.in
}

// A runFlags has the flags of how pipelines run.
type runFlags struct {
	temp, rejected string
	tries          int
	silence        time.Duration
	beamLog, json  bool

	printer *term.Printer
	bar     *term.Progress
}

func (o *runFlags) register(f *pflag.FlagSet) {
	f.StringVar(&o.temp, "temp", "",
		"a `FOLDER` for what is made on the way, which all workers read and write (default: beside the output)")
	f.StringVar(&o.rejected, "rejected", "",
		"write the rows that --on-error skip leaves out to a `FILE`.jsonl")
	f.IntVar(&o.tries, "tries", 4, "`N` runs of a pipeline that fails, before it is given up")
	f.DurationVar(&o.silence, "silence", 10*time.Minute,
		"a `TIME` without a sign of life of any worker, after which a pipeline is run again")
	f.BoolVar(&o.beamLog, "beam-log", false, "print what Beam logs")
	f.BoolVar(&o.json, "json", false, "print JSON")
}

// run starts Beam and calls f, which prints with o.printer. out is what the temporary folder lies beside.
func (o *runFlags) run(cmd *cobra.Command, out string, f func(r *beam.Run) error) error {
	quiet("info")
	_ = flag.CommandLine.Parse(nil) // Beam asks whether its flags have been parsed, and cobra has done that
	sdk.Init()
	if !o.beamLog { // an error of a task comes back as that of the pipeline, in fewer words
		slog.SetDefault(slog.New(slog.DiscardHandler))
	}
	if o.temp == "" {
		o.temp = strings.TrimRight(out, "/") + ".tmp"
	}
	made := false // by this run
	switch info, err := os.Stat(o.temp); {
	case err == nil && !info.IsDir():
		return exit.Usagef("--temp: %s is a file: give a folder", o.temp)
	case err != nil:
		made = true
	}
	if err := o.check(cmd.Flags()); err != nil {
		return err
	}
	o.printer = term.NewPrinter(cmd.OutOrStdout(), cmd.ErrOrStderr())
	o.bar = o.printer.Progress()
	r := &beam.Run{
		Temp: o.temp, Tries: o.tries, Silence: o.silence, Progress: o.bar.Report,
		Noted:  func(text string) { o.printer.Notef("fddhdb-beam: %s", text) },
		Failed: func(err error) { o.printer.Notef("fddhdb-beam: %s; it is run again", exit.Message(err)) },
	}
	err := o.printer.Scope(func() error { return f(r) })
	o.bar.End()
	if made {
		_ = os.Remove(o.temp) // it stays if something is in it
	}
	if err != nil {
		return err
	}
	if !o.json {
		for _, name := range slices.Sorted(maps.Keys(r.Counters())) {
			o.printer.Notef("%s: %s", name, term.Thousands(int(r.Counters()[name])))
		}
	}
	return nil
}

// check refuses, before the work, what would be found out after it.
func (o *runFlags) check(f *pflag.FlagSet) error {
	if o.rejected != "" {
		if skip := f.Lookup("on-error"); skip == nil || skip.Value.String() != "skip" {
			return exit.Usagef("--rejected is about the rows that --on-error skip leaves out")
		}
		if err := replaces("--rejected", o.rejected, `{"files":`); err != nil {
			return err
		}
	}
	endpoint := f.Lookup("endpoint").Value.String()
	if endpoint == "" {
		return nil
	}
	where := strings.ToUpper(f.Lookup("environment_type").Value.String())
	if !slices.Contains([]string{"LOOPBACK", "PROCESS", "DOCKER", "EXTERNAL"}, where) {
		return exit.Usagef("--environment_type %q: LOOPBACK, PROCESS and DOCKER are possible with --endpoint",
			where)
	}
	conn, err := net.DialTimeout("tcp", endpoint, 10*time.Second)
	if err != nil {
		return exit.Failedf("--endpoint %s: no runner answers: %w", endpoint, err)
	}
	return conn.Close()
}

// replaces refuses a file of this machine that is to be written, where it is a folder or something that does
// not begin as such a file does.
func replaces(flag, path, begin string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil: // it is new, or of another file system
		return nil
	case info.IsDir():
		return exit.Usagef("%s %s is a folder: give a file", flag, path)
	}
	b := make([]byte, len(begin))
	file, err := os.Open(path)
	if err != nil {
		return exit.Failedf("%s: %w", flag, err)
	}
	n, _ := io.ReadFull(file, b)
	_ = file.Close() // it was read
	if n > 0 && string(b[:n]) != begin {
		return exit.Usagef("%s: %s is there, and is something else: give another file, or remove it", flag,
			path)
	}
	return nil
}

// left tells of rows that were left out, and writes them to --rejected.
func (o *runFlags) left(rejected []beam.Rejected) error {
	o.bar.End()
	for i, bad := range rejected {
		if i == 10 {
			// rows, and groups of files
			o.printer.Notef("fddhdb-beam: and %s more", term.Thousands(len(rejected)-i))
			break
		}
		o.printer.Notef("fddhdb-beam: left out: %s", bad.Reason)
	}
	if o.rejected == "" {
		return nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for _, bad := range rejected {
		if err := enc.Encode(bad); err != nil {
			return err
		}
	}
	if err := os.WriteFile(o.rejected, b.Bytes(), 0o666); err != nil {
		return fmt.Errorf("--rejected: %w", err)
	}
	return nil
}
