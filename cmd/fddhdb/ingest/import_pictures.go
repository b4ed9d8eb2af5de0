package ingest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/encoder"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/run"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/source"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
)

// picturesTime is how long pictures are read for one commit: an encoder may take a second for one, and what
// is not stored is lost with an interruption.
const picturesTime = 10 * time.Second

// pictureModality is the modality of pictures in a new collection.
const pictureModality = "image"

// choosePictures says what --pictures makes.
func (o *importing) choosePictures() error {
	p := &o.names.Pictures
	p.Hash = o.names.Hash
	p.Open = PictureEncoders(o.Verb)
	if o.makes && p.Hash == "" {
		encoders, dim, err := newEncoders(o.Verb, "--encoder", cmp.Or(o.encoder, encoder.Look),
			pictureModality, db.InputFile)
		p.Modality, p.Encoders = db.Modality{Name: pictureModality, Dim: dim}, encoders
		return err
	}
	return nil
}

// sameEncoder refuses --encoder where a collection that is there has another one.
func (o *importing) sameEncoder(c api.Collection) error {
	schema, err := c.Schema(o.Ctx)
	if err != nil || o.encoder == "" {
		return err
	}
	given := o.names.Pictures.Encoders[0].Command
	for _, e := range schema.Encoders {
		if e.Input == db.InputFile && slices.Equal(e.Command, given) {
			return nil
		}
	}
	return exit.Usagef("--encoder: collection %q is there, and has another encoder: leave the flag out, or change the encoder by fddhdb reembed", c.Name())
}

// PictureEncoders returns the encoders of files that the collection has.
func PictureEncoders(v *run.Verb) func(db.Schema) ([]source.PictureEncoder, error) {
	return func(schema db.Schema) ([]source.PictureEncoder, error) { return pictureEncoders(v, schema) }
}

func pictureEncoders(v *run.Verb, schema db.Schema) (all []source.PictureEncoder, err error) {
	for i, m := range schema.Encoders {
		if m.Input != db.InputFile {
			continue
		}
		e := source.PictureEncoder{Modality: m.Modality}
		if e.OfPicture, _ = encoder.OfPicture(m.Command); e.OfPicture == nil {
			p, err := Trusted(v.Dir, v.CollectionName, &schema.Encoders[i])
			if err != nil {
				return nil, err
			}
			running := encoder.New(p)
			e.Close = running.Close
			dim := schema.Modalities[slices.IndexFunc(schema.Modalities, func(of db.Modality) bool {
				return of.Name == m.Modality
			})].Dim
			e.Encode = func(ctx context.Context, files []string) ([]encoder.Vector, []error, error) {
				return running.Each(ctx, dim, files)
			}
		}
		all = append(all, e)
	}
	if len(all) == 0 {
		return nil, exit.Usagef("--pictures: collection %q has no encoder of pictures: %s --set %s=COMMAND stores one",
			v.CollectionName, EncoderVerb(v.Dir, v.CollectionName, db.InputFile), schema.Modalities[0].Name)
	}
	return all, nil
}

// syncFolders finds the pictures that --sync deletes, and notes the folder of an import of pictures, whose
// pictures another import with --sync keeps. It runs before anything is stored: a wrong folder changes
// nothing.
func (o *importing) syncFolders(d api.Database, c api.Collection, p *source.Pictures) error {
	name := fmt.Sprintf("fddhdb pictures/%d", c.ID())
	var noted []string
	value, err := d.Mark(o.Ctx, name)
	switch {
	case err == nil:
		err = json.Unmarshal(value, &noted)
	case errors.Is(err, db.ErrNotFound), errors.Is(err, errors.ErrUnsupported) && !o.sync:
		err = nil
	}
	if err != nil {
		return err
	}
	p.Spare(slices.DeleteFunc(slices.Clone(noted), func(f string) bool { return f == p.Root() }))
	folders := slices.Clone(noted)
	if !slices.Contains(folders, p.Root()) {
		folders = append(folders, p.Root())
	}
	if o.sync {
		if folders, err = o.findGone(c, p, folders); err != nil {
			return err
		}
	}
	if o.dryRun || slices.Equal(folders, noted) {
		return nil
	}
	if value, err = json.Marshal(folders); err != nil {
		return err
	}
	b := d.NewBatch()
	if err = b.Mark(name, value); err == nil {
		err = b.Commit(o.Ctx)
	}
	if errors.Is(err, errors.ErrUnsupported) { // nothing keeps marks there, and --sync is refused
		return nil
	}
	return err
}

// findGone finds the pictures that have no file in any folder. It returns the folders without those that were
// moved: all their pictures are in this one. A folder without any picture of the collection is not mounted,
// or was moved, or is one of another machine. Nothing tells these apart, so its pictures stay.
func (o *importing) findGone(c api.Collection, p *source.Pictures, folders []string) ([]string, error) {
	gone, there, err := p.Gone(o.Ctx, c)
	if err != nil {
		return nil, err
	}
	o.gone = slices.Clone(gone)
	var away []string
	for _, other := range folders {
		if other == p.Root() {
			continue
		}
		missing := func(key string) bool {
			_, err := os.Lstat(filepath.Join(other, filepath.FromSlash(key)))
			return errors.Is(err, fs.ErrNotExist)
		}
		o.gone = slices.DeleteFunc(o.gone, func(key string) bool { return !missing(key) })
		empty := !slices.ContainsFunc(gone, func(key string) bool { return !missing(key) })
		for row := 0; empty && row < p.Rows(); row++ {
			empty = missing(p.Name(row))
		}
		if empty {
			away = append(away, other)
		}
	}
	n := len(o.gone)
	if n > 0 && len(away) > 0 {
		return nil, exit.Failedf("--sync: %s of the collection, such as %q, would be deleted, and may be in %s, from which pictures were imported, too, and where there is none of them now: is its disk mounted? Nothing was changed; fddhdb delete deletes items",
			term.Plural(n, "picture", "pictures"), o.gone[0], term.Plain(away[0]))
	}
	if n > there && (there == 0 || n > 100) {
		return nil, exit.Failedf("--sync: %s of the collection would be deleted, and %s have their file in %s: is it another folder? Nothing was changed; fddhdb delete --where deletes items",
			term.Plural(n, "picture", "pictures"), term.Thousands(there), term.Plain(p.Path()))
	}
	return slices.DeleteFunc(folders, func(f string) bool { return slices.Contains(away, f) }), nil
}

// deleteGone deletes the items of pictures whose files are gone.
func (o *importing) deleteGone(c api.Collection) error {
	if o.dryRun || len(o.gone) == 0 {
		return nil
	}
	_, err := c.Delete(o.Ctx, o.gone...)
	return err
}
