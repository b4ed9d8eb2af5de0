package command

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
	p.Open = o.pictureEncoders
	if o.makes && p.Hash == "" {
		encoders, dim, err := o.newEncoders("--encoder", cmp.Or(o.encoder, encoder.Look), pictureModality,
			db.InputFile)
		p.Modality, p.Encoders = db.Modality{Name: pictureModality, Dim: dim}, encoders
		return err
	}
	return nil
}

// sameEncoder refuses --encoder where a collection that is there has another one.
func (o *importing) sameEncoder(c api.Collection) error {
	schema, err := c.Schema(o.ctx)
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

// pictureEncoders returns the encoders of files that the collection has.
func (v *verb) pictureEncoders(schema db.Schema) (all []source.PictureEncoder, err error) {
	for i, m := range schema.Encoders {
		if m.Input != db.InputFile {
			continue
		}
		e := source.PictureEncoder{Modality: m.Modality}
		if e.OfPicture, _ = encoder.OfPicture(m.Command); e.OfPicture == nil {
			p, err := trusted(v.dir, v.collection, &schema.Encoders[i])
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
			v.collection, encoderVerb(v.dir, v.collection, db.InputFile), schema.Modalities[0].Name)
	}
	return all, nil
}

// syncFolders finds the pictures that --sync deletes, and notes the folder of an import of pictures, whose
// pictures another import with --sync keeps. It runs before anything is stored: a wrong folder changes
// nothing.
func (o *importing) syncFolders(d api.Database, c api.Collection, p *source.Pictures) error {
	name := fmt.Sprintf("fddhdb pictures/%d", c.ID())
	var folders []string
	value, err := d.Mark(o.ctx, name)
	if err == nil {
		err = json.Unmarshal(value, &folders)
	} else if errors.Is(err, db.ErrNotFound) {
		err = nil
	}
	if err != nil {
		return err
	}
	known := slices.Index(folders, p.Root())
	if o.sync {
		others := slices.Clone(folders)
		if known >= 0 {
			others = slices.Delete(others, known, known+1)
		}
		if err := o.findGone(c, p, others); err != nil {
			return err
		}
	}
	if o.dryRun || known >= 0 {
		return nil
	}
	if value, err = json.Marshal(append(folders, p.Root())); err != nil {
		return err
	}
	b := d.NewBatch()
	if err := b.Mark(name, value); err != nil {
		return err
	}
	return b.Commit(o.ctx)
}

func (o *importing) findGone(c api.Collection, p *source.Pictures, others []string) error {
	gone, there, err := p.Gone(o.ctx, c)
	if err != nil {
		return err
	}
	for _, other := range others {
		if _, err := os.Stat(other); err != nil {
			if len(gone) > there/10 { // otherwise it was moved, and is this folder
				return exit.Failedf("--sync: the collection has pictures of another folder, too, which cannot be read: %w. Nothing was changed; fddhdb delete --where deletes items",
					err)
			}
			continue
		}
		gone = slices.DeleteFunc(gone, func(key string) bool {
			_, err := os.Lstat(filepath.Join(other, filepath.FromSlash(key)))
			return !errors.Is(err, fs.ErrNotExist)
		})
	}
	if len(gone) > there && (there == 0 || len(gone) > 100) {
		return exit.Failedf("--sync: %s of the collection would be deleted, and %s have their file in %s: is it another folder? Nothing was changed; fddhdb delete --where deletes items",
			term.Plural(len(gone), "picture", "pictures"), term.Thousands(there), term.Plain(p.Path()))
	}
	o.gone = gone
	return nil
}

// deleteGone deletes the items of pictures whose files are gone.
func (o *importing) deleteGone(c api.Collection) error {
	if o.dryRun || len(o.gone) == 0 {
		return nil
	}
	_, err := c.Delete(o.ctx, o.gone...)
	return err
}
