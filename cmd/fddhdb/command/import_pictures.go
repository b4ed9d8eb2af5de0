package command

import (
	"time"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/source"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/codec/perceptual"
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
		p.Modality = db.Modality{Name: pictureModality, Dim: perceptual.LookDim}
		p.Encoders = []db.Encoder{{Modality: pictureModality, Input: db.InputFile, Command: []string{"builtin:look"}}}
	}
	return nil
}

// pictureEncoders returns the encoders of files that the collection has.
func (v *verb) pictureEncoders(schema db.Schema) (all []source.PictureEncoder, err error) {
	for _, e := range schema.Encoders {
		if e.Input == db.InputFile {
			all = append(all, source.PictureEncoder{Modality: e.Modality, OfPicture: perceptual.Look})
		}
	}
	if len(all) == 0 {
		return nil, exit.Usagef("--pictures: collection %q has no encoder of pictures: %s --set %s=COMMAND stores one",
			v.collection, encoderVerb(v.dir, v.collection, db.InputFile), schema.Modalities[0].Name)
	}
	return all, nil
}

// deleteGone deletes the items of pictures whose files are gone.
func (o *importing) deleteGone(c api.Collection, p *source.Pictures) error {
	keys, err := p.Gone(o.ctx, c)
	if err != nil {
		return err
	}
	if o.deleted = len(keys); o.dryRun || len(keys) == 0 {
		return nil
	}
	if len(keys) > 100 && len(keys) > p.Rows() {
		return exit.Failedf("--sync: %s of %s have no file in %s any more, and %s are there: is it another folder? Delete them by delete --where",
			term.Plural(len(keys), "item", "items"), term.Thousands(len(keys)+p.Rows()), p.Path(),
			term.Plural(p.Rows(), "picture", "pictures"))
	}
	_, err = c.Delete(o.ctx, keys...)
	return err
}
