package db

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
)

// indexOnlyPatient is an index-only copy of a small database.
func indexOnlyPatient(t testing.TB) *patient {
	t.Helper()
	p := &patient{t: t, fs: vfs.NewMem(), dir: "index-only", rounding: true}
	d := manyKinds(t, &Options{FS: p.fs})
	c, err := d.CreateCollection(ctx, "growing", pairsSchema)
	if err != nil {
		t.Fatal(err)
	}
	items := pairs(60, synth.Config{Missing: .4})
	putAll(t, c, items)
	mustTrain(t, c, TrainOptions{Options: model.Options{Bits: 24, Anchors: 12, Views: model.ViewsTarget}})
	for _, it := range items[:20] {
		it.Labels = []string{"grown"}
	}
	putAll(t, c, items[:20])
	if err := c.growLabels(ctx, 0, new(Update)); err != nil { // 20 rows wait for another code
		t.Fatal(err)
	}
	is := indexOnlyOf(t, d, &Options{FS: p.fs})
	p.before = hold(t, is)
	mustClose(t, is)
	return p
}

// repairedIndexOnly repairs an index-only copy, and checks that nothing is in it that
// such a copy does not have, and that what may not change did not.
func (p *patient) repairedIndexOnly(what string, mayChange func(lost []Finding) func(collection, key string) bool) ([]Finding, *held) {
	p.t.Helper()
	lost, _ := p.repair(RepairOptions{})
	h := p.sound(what, mayChange(lost))
	for key := range h.stored {
		switch key[0] {
		case codec.KindFeatures, codec.KindStatistics, codec.KindOutbox, codec.KindLessons:
			p.t.Errorf("%s: %x has come", what, key)
		}
	}
	if again, r := p.repair(RepairOptions{}); len(again) > 0 || r.Damaged {
		p.t.Errorf("%s: repaired again: %v, %+v", what, again, r)
	}
	return lost, h
}

// What is made of a sound index-only copy is all that it holds, byte for byte.
func TestRepairKeepsIndexOnly(t *testing.T) {
	longTest(t)
	p := indexOnlyPatient(t)
	p.remake()
	p.sameStored("made again", p.sound("made again", nil))
}

// Records of each kind are lost of an index-only copy, one by one and all of them: what is
// stored twice is as it was, and what is not is lost, and said to be.
func TestRepairOfIndexOnly(t *testing.T) {
	longTest(t)
	whole := indexOnlyPatient(t)
	byKind := map[byte][]string{}
	for _, key := range slices.Sorted(maps.Keys(whole.before.stored)) {
		byKind[key[0]] = append(byKind[key[0]], key)
	}
	concerned := func(lost []Finding) func(collection, key string) bool {
		return func(collection, key string) bool {
			return concerns(lost, collection, key, whole.before) || slices.ContainsFunc(lost, func(f Finding) bool {
				return f.Collection == collection && (f.Record == "codes of rows" || strings.HasPrefix(f.Record, "rows with modality"))
			})
		}
	}
	for i, kind := range slices.Sorted(maps.Keys(byKind)) {
		keys := byKind[kind]
		key := []byte(keys[(i*7)%len(keys)])
		for _, all := range []bool{false, true} {
			p := whole.another()
			what := fmt.Sprintf("key %x", key)
			p.store(func(kv *pebble.DB) {
				err := kv.Delete(key, pebble.Sync)
				if all {
					what = fmt.Sprintf("kind %02x", kind)
					err = kv.DeleteRange([]byte{kind}, []byte{kind + 1}, pebble.Sync)
				}
				if err != nil {
					t.Fatal(err)
				}
			})
			lost, h := p.repairedIndexOnly(what, concerned)
			t.Logf("%s: %d findings: %v", what, len(lost), lost[:min(3, len(lost))])
			switch kind {
			case codec.KindKey, codec.KindRowKeys, codec.KindName, codec.KindFieldRows, codec.KindCodes, codec.KindCodeRows, codec.KindSubstring:
				if len(lost) > 0 {
					t.Errorf("%s: lost %v", what, lost)
				}
				p.sameStored(what, h)
			case codec.KindProjection:
				for key, value := range h.stored {
					if key[0] != kind && value != p.before.stored[key] {
						t.Errorf("%s: %x has changed", what, key)
					}
				}
				fallthrough
			case codec.KindCollection, codec.KindCounters, codec.KindItem, codec.KindSpace, codec.KindModel:
				if len(lost) == 0 {
					t.Errorf("%s: nothing is said to be lost", what)
				}
			}
		}
	}
}

// Tables of an index-only copy are gone, each: what is left is sound, and no more than it was.
func TestRepairOfTablesOfIndexOnly(t *testing.T) {
	longTest(t)
	whole := indexOnlyPatient(t)
	for _, name := range whole.files(isTable) {
		p := whole.another()
		if err := p.fs.Remove(p.file(name)); err != nil {
			t.Fatal(err)
		}
		lost, _ := p.repairedIndexOnly(name+" gone", func([]Finding) func(collection, key string) bool { return whatever })
		if len(lost) == 0 {
			t.Errorf("%s gone: nothing is said to be lost", name)
		}
	}
}

// Codes of features that nothing tells any more are lost, those of labels are made again,
// and the items are there.
func TestRepairOfLostCodesOfIndexOnly(t *testing.T) {
	longTest(t)
	p := indexOnlyPatient(t)
	id := uint32(1)
	p.store(func(kv *pebble.DB) {
		for _, kind := range []byte{codec.KindCodes, codec.KindRowCodes, codec.KindCodeRows, codec.KindSubstring} {
			prefix := codec.CollectionKey(kind, id)
			if err := kv.DeleteRange(prefix, codec.PrefixEnd(prefix), pebble.Sync); err != nil {
				t.Fatal(err)
			}
		}
	})
	rows := map[string]bool{}
	lost, h := p.repairedIndexOnly("codes", func(lost []Finding) func(collection, key string) bool {
		for _, f := range lost {
			rows[f.Record] = true
		}
		return func(collection, _ string) bool { return collection == "main" }
	})
	labelled, gone := 0, 0
	for key, was := range p.before.items["main"] {
		is := h.items["main"][key]
		if is == nil || string(is.Payload) != string(was.Payload) || !slices.Equal(is.Modalities, was.Modalities) {
			t.Fatalf("item %s: %+v, was %+v", key, is, was)
		}
		for m, code := range was.Codes {
			switch {
			case code.From == "labels":
				labelled++
				if string(is.Codes[m].Code) != string(code.Code) {
					t.Errorf("item %s: code for %s: %+v, was %+v", key, m, is.Codes[m], code)
				}
			default:
				gone++
				if name := fmt.Sprintf("code of row %d", p.before.rows["main"][key]); is.Codes[m].Code != nil || !rows[name] {
					t.Errorf("item %s: code for %s: %+v, was %+v; lost %v", key, m, is.Codes[m], code, rows[name])
				}
			}
		}
	}
	if labelled == 0 || gone == 0 {
		t.Errorf("%d codes of labels, %d others, %v", labelled, gone, lost)
	}
}

// The descriptor of an index-only copy that is lost is that of one again.
func TestRepairOfAnIndexOnlyDescriptor(t *testing.T) {
	longTest(t)
	p := indexOnlyPatient(t)
	key := codec.CollectionKey(codec.KindCollection, 1)
	p.put(key, nil)
	lost, _ := p.repairedIndexOnly("descriptor", func([]Finding) func(collection, key string) bool { return whatever })
	if !strings.Contains(fmt.Sprint(lost), "taken for index-only") {
		t.Errorf("lost %v", lost)
	}
	d, err := record.DecodeDescriptor([]byte(p.value(string(key))))
	if err != nil || !d.IndexOnly || d.Version != record.VersionIndexOnly || binary.BigEndian.Uint32(key[1:]) != d.ID {
		t.Errorf("%+v, %v", d, err)
	}
}

// Nothing tells any more which modalities items had, nor what their codes were made of: what
// is made is sound all the same, and items have the codes that they had.
func TestRepairOfLostModalitiesOfIndexOnly(t *testing.T) {
	longTest(t)
	whole := indexOnlyPatient(t)
	kinds := []byte{codec.KindRows, codec.KindRowCodes, codec.KindProjection, codec.KindItem, codec.KindCodes}
	for which := 1; which < 1<<len(kinds); which++ {
		if which&1 == 0 {
			continue
		}
		p := whole.another()
		what := "lost:"
		p.store(func(kv *pebble.DB) {
			for i, kind := range kinds {
				if which>>i&1 == 0 {
					continue
				}
				what += fmt.Sprintf(" %02x", kind)
				for key := range whole.before.stored {
					if key[0] != kind || kind == codec.KindRows && key[5] != codec.SetModality || kind == codec.KindItem && key[len(key)-1]%3 > 0 {
						continue
					}
					if err := kv.Delete([]byte(key), pebble.NoSync); err != nil {
						t.Fatal(err)
					}
				}
			}
		})
		lost, h := p.repairedIndexOnly(what, func([]Finding) func(collection, key string) bool { return whatever })
		if !slices.ContainsFunc(lost, func(f Finding) bool { return strings.HasPrefix(f.Record, "rows with modality") }) {
			t.Errorf("%s: nothing is said of modalities: %v", what, lost)
		}
		if which>>3 != 0 {
			continue
		}
		for name, items := range p.before.items {
			for key, was := range items {
				is := h.items[name][key]
				if is == nil {
					t.Fatalf("%s: item %s of %s has gone", what, key, name)
				}
				for _, m := range was.Modalities {
					if code := was.Codes[m].Code; string(is.Codes[m].Code) != string(code) {
						t.Errorf("%s: item %s of %s: code for %s: %+v, was %+v", what, key, name, m, is.Codes[m], was.Codes[m])
					}
				}
			}
		}
	}
}
