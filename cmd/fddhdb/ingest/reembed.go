package ingest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/encoder"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/picture"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/run"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/reembed"
	"github.com/fddhdb/fddhdb/db/serve"
)

// A reembedding is a run of reembed.
type reembedding struct {
	*run.Verb
	from, to             string
	command, queries     string // of new encoders
	field, pictures      string // that the vectors are made of
	switches, incomplete bool
	folder               *picture.Folder // nil: none
	temp                 string          // a folder for payloads that an encoder reads
	filled               reembed.Filled
	modality             db.Modality // to
}

func ReembedCommand(e *run.Env) *cobra.Command {
	v := e.NewVerb(run.GroupLearn, "reembed DIR --from NAME --to NAME (--encoder COMMAND | --switch)",
		"Change the encoder of a collection while searches go on", `
		Reembed gives the items that have a vector of --from one of --to, by another encoder.
		Searches go on with --from until --switch. Items that are put meanwhile by import
		--pictures and put --picture get both vectors.

		1. --encoder COMMAND adds the modality --to with its encoder (see encoder), and fills
		   it. If it is interrupted, or items have come, the same command goes on; then
		   --encoder may be left out.
		2. --switch lets queries use --to: in one commit, once no item and no encoder is
		   missing. --incomplete does not wait for that. To go back, exchange --from and --to.

		The vectors are made of the text in --text-field, or else of the pictures of the
		items: their payloads, or files below --pictures that a string field or the key
		names. Where a program makes the vectors of pictures, --query-encoder is the one of
		texts. In a trained collection, train again and activate the new space before the
		switch.`, `
		fddhdb reembed photos.db --from image --to clip2 --pictures ~/Pictures \
		    --encoder "http://localhost:3003/predict ViT-L-14__openai"
		fddhdb reembed notes.db --from text --to text2 --text-field body \
		    --encoder "model2vec potion-base-8M"
		fddhdb reembed photos.db --from image --to clip2 --switch
		fddhdb reembed photos.db --from clip2 --to image --switch`).OnCollection()
	o, f := reembedding{Verb: v}, v.Flags
	f.StringVar(&o.from, "from", "", "the modality `NAME` that items have")
	f.StringVar(&o.to, "to", "", "the modality `NAME` that takes its place")
	f.StringVar(&o.command, "encoder", "", "the `COMMAND` of the encoder of --to")
	f.StringVar(&o.queries, "query-encoder", "", "the `COMMAND` of the encoder of texts, where --encoder reads files")
	f.StringVar(&o.field, "text-field", "", "make vectors of the text in the field `NAME`")
	f.StringVar(&o.pictures, "pictures", "", "make vectors of pictures below the folder `DIR`")
	f.BoolVar(&o.switches, "switch", false, "let queries use --to in place of --from")
	f.BoolVar(&o.incomplete, "incomplete", false, "with --switch: also if items or encoders are missing")
	usage.Matter(f, "from", "to", "encoder", "switch", "pictures", "text-field")
	return v.Does(func() error {
		switch {
		case o.from == "" || o.to == "" || o.from == o.to:
			return exit.Usagef("reembed needs two modalities: --from NAME, which items have, and --to NAME, which takes its place")
		case o.incomplete && !o.switches:
			return exit.Usagef("--incomplete is about --switch, which is missing")
		case o.switches && o.command+o.queries+o.field+o.pictures != "":
			return exit.Usagef("--switch changes what queries use: fill --to before, without --switch")
		case o.field != "" && o.pictures+o.queries != "":
			return exit.Usagef("--text-field makes vectors of texts: leave out --pictures and --query-encoder")
		}
		if o.switches {
			return v.Change(o.exchange)
		}
		return o.fill()
	})
}

// exchange lets queries use the other modality.
func (o *reembedding) exchange() error {
	stats, err := o.Collection.Stats(o.Ctx)
	if err != nil {
		return err
	}
	if m, err := o.Verb.FindModality("--to", o.to); err != nil {
		return err
	} else if stats.Trained && !o.incomplete && !m.Sparse {
		one := make([]float32, m.Dim)
		one[0] = 1
		_, err := o.Collection.EncodeQuery(o.Ctx, db.Query{From: o.to, Vector: one})
		switch {
		case errors.Is(err, db.ErrNoModel):
			return exit.Failedf("the active space of codes was learned without %s, so queries by it would find nothing: train again, fddhdb activate the new space, and then --switch; --incomplete switches all the same",
				o.to)
		case err != nil && !errors.Is(err, db.ErrInvalid): // it knows the modality, if not this vector
			return err
		}
	}
	err = reembed.Switch(o.Ctx, o.Collection, o.from, o.to, o.incomplete)
	var lacks *reembed.IncompleteError
	if errors.As(err, &lacks) {
		return exit.Failedf("%w: fddhdb reembed without --switch fills --to; --incomplete switches all the same", err)
	}
	if err != nil {
		return err
	}
	used := map[string]string{"from": o.from, "to": o.to}
	reads := func(modality string) (all []db.EncoderInput) {
		for _, e := range o.Schema.Encoders {
			if e.Modality == modality {
				all = append(all, e.Input)
			}
		}
		return all
	}
	before, more := reads(o.from), ""
	if len(before) == 0 { // nothing to go back to
		return o.Tell(used, "queries use %s", term.Plain(o.to))
	}
	for _, input := range reads(o.to) {
		if !slices.Contains(before, input) {
			more = " --incomplete"
		}
	}
	return o.Tell(used, "queries use %s; to go back: %s --from %[1]s --to %[3]s --switch%[4]s", term.Plain(o.to),
		term.Plain(run.VerbLine("reembed", o.Dir, o.CollectionName)), term.Plain(o.from), more)
}

// fill makes the vectors of items that have none.
func (o *reembedding) fill() error {
	o.Progress().Report("encoding", 0, 0) // an encoder may take a while to start
	var encoders []db.Encoder
	var err error
	if o.command != "" {
		// The encoder answers before the database is open: that may take minutes.
		encoders, o.modality.Dim, err = newEncoders(o.Verb, "--encoder", o.command, o.to, o.input())
	}
	if err == nil && o.queries != "" {
		var more []db.Encoder
		more, _, err = newEncoders(o.Verb, "--query-encoder", o.queries, o.to, db.InputText)
		encoders = append(encoders, more...)
	}
	if err != nil {
		return err
	}
	if o.folder, err = picture.OpenFolder(o.pictures, func(head []byte) bool {
		return serve.PictureType(head) != ""
	}); err != nil {
		return err
	}
	defer o.folder.Close()
	return o.Change(func() error {
		old, err := o.Verb.FindModality("--from", o.from)
		if err != nil {
			return err
		}
		if encoders != nil {
			o.modality.Name, o.modality.Metric = o.to, old.Metric
			if err := reembed.Begin(o.Ctx, o.Collection, o.modality, encoders); err != nil {
				return err
			}
			if o.Schema, err = o.Collection.Schema(o.Ctx); err != nil {
				return err
			}
		}
		if o.modality, err = o.Verb.FindModality("--to", o.to); err != nil {
			return exit.Usagef("%w; --encoder COMMAND adds it", err)
		}
		if err := o.encodeAll(); err != nil {
			return err
		}
		return o.report()
	})
}

// input returns what the encoder reads.
func (o *reembedding) input() db.EncoderInput {
	if o.field != "" {
		return db.InputText
	}
	return db.InputFile
}

// encodeAll runs the encoder of the modality.
func (o *reembedding) encodeAll() (err error) {
	i := slices.IndexFunc(o.Schema.Encoders, func(e db.Encoder) bool {
		return e.Modality == o.to && e.Input == o.input()
	})
	if i < 0 {
		return exit.Usagef("modality %q has no encoder of input %s: --encoder COMMAND adds one, and --text-field NAME makes vectors of texts",
			o.to, o.input())
	}
	if o.field != "" && !slices.ContainsFunc(o.Schema.Fields, func(f db.Field) bool {
		return f.Name == o.field && f.Type == db.String
	}) {
		return exit.Usagef("--text-field %s: the collection has no such field of strings", o.field)
	}
	p, err := Trusted(o.Dir, o.CollectionName, &o.Schema.Encoders[i])
	if err != nil {
		return err
	}
	running := encoder.New(p)
	defer running.Close()
	if o.temp, err = os.MkdirTemp("", "fddhdb-reembed-"); err != nil {
		return err
	}
	defer os.RemoveAll(o.temp)
	o.filled, err = reembed.Fill(o.Ctx, o.DB, o.Collection, reembed.Options{From: o.from, To: o.to,
		Encode: func(ctx context.Context, items []*db.Item) ([]reembed.Vector, error) {
			return o.encode(ctx, running, items)
		},
		Progress: func(done, of int) { o.Progress().Report("encoding", int64(done), int64(of)) },
	})
	if err != nil && o.filled.Items > 0 {
		err = exit.Failedf("%w; %s have vectors of %s: the same command goes on", err,
			term.Plural(o.filled.Items, "more item", "more items"), o.to)
	}
	return err
}

// encode makes the vectors of items. What an encoder refuses costs only the item.
func (o *reembedding) encode(ctx context.Context, running *encoder.Encoder,
	items []*db.Item) ([]reembed.Vector, error) {
	all := make([]reembed.Vector, len(items))
	var inputs []string
	var at []int
	for i, it := range items {
		input, err := o.content(i, it)
		if err != nil {
			all[i].Err = err
			continue
		}
		inputs, at = append(inputs, input), append(at, i)
	}
	vectors, refused, err := running.Each(ctx, o.modality.Dim, inputs)
	if err != nil {
		return nil, err
	}
	for n, i := range at {
		all[i] = reembed.Vector{Dense: vectors[n].Dense, Sparse: vectors[n].Sparse, Err: refused[n]}
	}
	return all, nil
}

// content returns what the encoder reads of an item.
func (o *reembedding) content(i int, it *db.Item) (string, error) {
	if o.field != "" {
		text, _ := it.Fields[o.field].(string)
		if text == "" {
			return "", fmt.Errorf("it has no text in the field %s", o.field)
		}
		return text, nil
	}
	if name := o.folder.Find(it); name != "" {
		return filepath.Abs(filepath.Join(o.pictures, name))
	}
	if o.folder != nil { // its payload may be a thumbnail, and so make another vector
		return "", errors.New("it names no picture below --pictures")
	}
	if serve.PictureType(it.Payload[:min(len(it.Payload), 512)]) == "" {
		return "", errors.New("its payload is no picture: --pictures DIR takes files")
	}
	path := filepath.Join(o.temp, strconv.Itoa(i))
	return path, os.WriteFile(path, it.Payload, 0o600)
}

func (o *reembedding) report() error {
	for _, r := range o.filled.Reasons {
		o.Warnf("left out: %s: %v", term.Plain(r.Key), r.Err)
	}
	if more := o.filled.Skipped - len(o.filled.Reasons); more > 0 {
		o.Warnf("left out: %s more", term.Thousands(more))
	}
	return o.Tell(map[string]any{"items": o.filled.Items, "skipped": o.filled.Skipped},
		"%s got a vector of %s; when none is missing: %s --from %s --to %[2]s --switch",
		term.Plural(o.filled.Items, "item", "items"), term.Plain(o.to),
		term.Plain(run.VerbLine("reembed", o.Dir, o.CollectionName)), term.Plain(o.from))
}
