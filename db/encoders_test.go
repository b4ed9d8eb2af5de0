package db_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model/fit"
)

// Encoders are kept in the order of modalities, through alterations, trainings and reopening, and
// come with copies. Without the last one older versions can read the database again.
func TestEncoders(t *testing.T) {
	fs := vfs.NewMem()
	d := dbkit.MustOpen(t, "db", &db.Options{FS: fs})
	c := need(d.CreateCollection(ctx, "main", dbkit.PairsSchema))(t)
	putAll(t, c, dbkit.Pairs(40, synth.Config{}))
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 10}})
	given := []db.Encoder{
		{"text", db.InputText, []string{"python3", "a b.py", ""}},
		{"image", db.InputText, []string{"clip"}}, {"image", db.InputFile, []string{"/opt/clip", "--file"}},
	}
	want := []db.Encoder{given[2], given[1], given[0]}
	same := func(what string, d *db.DB, want []db.Encoder) {
		t.Helper()
		got, err := dbkit.MustCollection(t, d, "main").Schema()
		diff := cmp.Diff(want, got.Encoders)
		failIf(t, err != nil || diff != "", "%s: %v, %s", what, err, diff)
	}
	before := need(d.Snapshot())(t)
	must(t, c.Alter(ctx, db.Alteration{Encoders: given}))
	given[0].Command[0] = "changed by the caller"
	want[2].Command = []string{"python3", "a b.py", ""}
	same("set", d, want)
	then := need(before.Collection("main"))(t)
	got, err := then.Schema()
	failIf(t, err != nil || got.Encoders != nil, "a snapshot of before has %v, %v", got, err)
	must(t, errors.Join(before.Close(),
		c.Alter(ctx, db.Alteration{AddFields: []db.Field{{"place", db.String, false}}})))
	same("altered", d, want)

	// An index-only copy has them, and can be given others.
	must(t, d.Checkpoint(ctx, "copy", db.CheckpointOptions{IndexOnly: true}))
	copied := dbkit.MustOpen(t, "copy", &db.Options{FS: fs})
	same("copy", copied, want)
	must(t, dbkit.MustCollection(t, copied, "main").Alter(ctx, db.Alteration{Encoders: want[:1]}))
	same("copy with others", copied, want[:1])
	dbkit.CheckSound(t, copied, "copy with others")
	dbkit.MustClose(t, copied)

	dbkit.MustClose(t, d)
	d = dbkit.MustOpen(t, "db", &db.Options{FS: fs})
	same("opened again", d, want)
	c = dbkit.MustCollection(t, d, "main")
	must(t, c.Alter(ctx, db.Alteration{Encoders: []db.Encoder{}}))
	same("removed", d, nil)
	dbkit.CheckSound(t, d, "removed")
	dbkit.MustClose(t, d)
}

// What cannot be an encoder is refused, and nothing is changed.
func TestEncodersThatCannotBe(t *testing.T) {
	d := dbkit.MustOpen(t, "db", &db.Options{FS: vfs.NewMem()})
	defer dbkit.MustClose(t, d)
	c := need(d.CreateCollection(ctx, "main", dbkit.PairsSchema))(t)
	codes := need(d.CreateCollection(ctx, "codes", db.Schema{Bits: 16}))(t)
	one := db.Encoder{"text", db.InputText, []string{"encode"}}
	must(t, c.Alter(ctx, db.Alteration{Encoders: []db.Encoder{one}}))
	for _, r := range []struct {
		c    *db.Collection
		all  []db.Encoder
		want string
	}{
		{c, []db.Encoder{{"sound", db.InputText, []string{"x"}}}, `unknown modality "sound"`},
		{c, []db.Encoder{{"text", "", []string{"x"}}}, `unknown input ""`},
		{c, []db.Encoder{{"text", "picture", []string{"x"}}},
			`unknown input "picture": text and file are possible`},
		{c, []db.Encoder{one, {"text", db.InputText, []string{"x"}}}, "two encoders of input text"},
		{c, []db.Encoder{{"text", db.InputText, nil}}, "the command is empty"},
		{c, []db.Encoder{{"text", db.InputText, []string{"", "x"}}}, "the command is empty"},
		{c, []db.Encoder{{"text", db.InputText, []string{"x\x00"}}}, "a byte 0"},
		{c, []db.Encoder{{"text", db.InputText, []string{"x", strings.Repeat("y", 1<<14)}}},
			"a command of 16387 bytes"},
		{codes, []db.Encoder{one}, "bring codes"},
	} {
		err := r.c.Alter(ctx, db.Alteration{Encoders: r.all})
		failIf(t, !errors.Is(err, db.ErrInvalid) || !strings.Contains(err.Error(), r.want), "%q: %v", r.all,
			err)
	}
	got, err := c.Schema()
	failIf(t, err != nil || len(got.Encoders) != 1, "%v, %v", got, err)
}
