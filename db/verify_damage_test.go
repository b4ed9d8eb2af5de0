package db_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/seed"
)

type keyValue struct{ key, value []byte }

// records returns everything that is stored.
func records(t testing.TB, d *db.DB) []keyValue {
	t.Helper()
	it := need(db.State(d).Engine.DB.NewIter(nil))(t)
	defer it.Close()
	var all []keyValue
	for ok := it.First(); ok; ok = it.Next() {
		all = append(all, keyValue{slices.Clone(it.Key()), slices.Clone(it.Value())})
	}
	return all
}

// put stores a record, or with a nil value deletes it, behind the back of the database.
func (r keyValue) put(t testing.TB, d *db.DB) {
	t.Helper()
	err := db.State(d).Engine.DB.Delete(r.key, pebble.NoSync)
	if r.value != nil {
		err = db.State(d).Engine.DB.Set(r.key, r.value, pebble.NoSync)
	}
	must(t, err)
}

// retractionCounts reports whether the stored statistics have counted the lesson of a
// retraction: of one that they have not, nothing else tells what it was.
func retractionCounts(t *testing.T, d *db.DB, r keyValue) bool {
	t.Helper()
	in, space := binary.BigEndian.Uint32(r.key[1:]), binary.BigEndian.Uint32(r.key[5:])
	v := db.State(d).Latest()
	defer v.Release()
	cv, _ := v.Collections.Get(in)
	for _, sp := range cv.Spaces {
		if sp.Space.ID == space {
			retraction := need(codec.DecodeRetraction(sp.Space.Bits, r.value))(t)
			return uint64(retraction.Revision) <= sp.Numbers.Checkpoint
		}
	}
	t.Fatalf("key %x is of no space", r.key)
	return false
}

// Every record that is deleted, that becomes garbage, and that gets the value of another
// one of its kind, is missed where something tells that it is wrong.
func TestVerifyFindsDamage(t *testing.T) {
	dbkit.LongTest(t)
	d := verified(t, nil)
	all := records(t, d)
	byKind := map[byte][]keyValue{}
	for _, r := range all {
		byKind[r.key[0]] = append(byKind[r.key[0]], r)
	}
	random := seed.Rand(t, 1, 2)
	tried := 0
	for _, kind := range slices.Sorted(maps.Keys(byKind)) {
		of := byKind[kind]
		for _, i := range random.Perm(len(of))[:min(effort.Of(24, 2), len(of))] {
			r := of[i]
			if codec.EmptySum(r.key, r.value) {
				continue // as good as none
			}
			try := func(what string, value []byte, deep bool) {
				if bytes.Equal(value, r.value) {
					return
				}
				tried++
				keyValue{r.key, value}.put(t, d)
				found, _ := dbkit.Findings(t, d, db.VerifyOptions{Deep: deep})
				failIf(t, len(found) == 0, "key %x %s: nothing is found", r.key, what)
				r.put(t, d)
			}
			garbage := []byte("garbage")
			if kind == codec.KindMark { // the database makes nothing of what stands in it
				try("empty", []byte{}, false)
				try("too long", make([]byte, db.MaxMarkBytes+1), false)
				continue
			}
			if kind != codec.KindLabel && kind != codec.KindName {
				try("garbage", garbage, false)
				if kind != codec.KindItem { // the payload is at the end
					try("cut", r.value[:len(r.value)-1], false)
				}
				try("empty", []byte{}, false)
			}
			switch {
			case kind == codec.KindOnlineRows: // a row may have taught nothing, and not be pending either
			case kind == codec.KindStale: // only what is made again tells
				try("deleted", nil, true)
			case kind == codec.KindRetraction: // the first ones go once the statistics know
				try("deleted", nil, true)
			case firstRevision(r.key): // nothing else tells what stands there
			default:
				try("deleted", nil, false)
			}
			other := of[random.IntN(len(of))]
			switch kind {
			case codec.KindItem, codec.KindOnlineRows, codec.KindStale: // it may be just as right
			case codec.KindDatabase: // of other meaning, and any number does
			case codec.KindRetraction:
				if retractionCounts(t, d, r) || retractionCounts(t, d, other) {
					try(fmt.Sprintf("that of %x", other.key), other.value, true)
				}
			case codec.KindFeatures, codec.KindProjection, codec.KindLessons, codec.KindEntries:
				try(fmt.Sprintf("that of %x", other.key), other.value, true)
			case codec.KindRevision:
				if _, chunk := codec.RevisionKeyParts(other.key); chunk == 0 &&
					!(firstRevision(r.key) && firstRevision(other.key)) {
					try(fmt.Sprintf("that of %x", other.key), other.value, false)
				}
			default:
				try(fmt.Sprintf("that of %x", other.key), other.value, false)
			}
		}
	}
	for kind := range 256 {
		err := codec.CheckKey([]byte{byte(kind)})
		known := err == nil || !strings.Contains(err.Error(), "unknown kind")
		failIf(t, known && len(byKind[byte(kind)]) == 0,
			"the database has no record of kind %02x to damage: verified is to store one", kind)
	}
	t.Logf("%d records of %d kinds damaged", tried, len(byKind))
	found, _ := dbkit.Findings(t, d, db.VerifyOptions{Deep: true})
	failIf(t, len(found) > 0, "mended again: %v", found)
}

// firstRevision reports whether a key is that of the descriptor of a first revision.
func firstRevision(key []byte) bool {
	if key[0] != codec.KindRevision {
		return false
	}
	revision, chunk := codec.RevisionKeyParts(key)
	return revision == 1 && chunk == 0
}

// What is found says where, and is the one thing that is wrong.
func TestVerifyNamesDamage(t *testing.T) {
	dbkit.LongTest(t)
	d := verified(t, nil)
	main := dbkit.MustCollection(t, d, "main")
	id := db.Inside(main).ID
	v, _ := db.State(d).Current.Load().Collections.Get(id)
	active, other := v.Spaces[1].Space, v.Spaces[0].Space
	row := uint32(25)
	get := func(key []byte) []byte {
		b, err := record.Get(db.State(d).Engine.DB, key)
		stopIf(t, err != nil || b == nil, "%x: %v, %v", key, b, err)
		return b
	}
	// block changes the entry of a number in a block.
	block := func(key []byte, n uint32, change func(entry []byte) []byte) []byte {
		b := need(codec.DecodeBlock(get(key)))(t)
		e := codec.NewBlockEdit(b.Width())
		e.Under(b)
		old, _ := b.Lookup(byte(n))
		if entry := change(slices.Clone(old)); entry != nil {
			e.Set(byte(n), entry)
		} else {
			e.Clear(byte(n))
		}
		return e.Append(nil, true)
	}
	// layer turns round whether a row is in a layer.
	layer := func(key []byte, row uint32) []byte {
		l := need(codec.DecodeLayer(get(key)))(t)
		if l.Added.Contains(row) {
			l.Added.Remove(row)
		} else {
			l.Added.Add(row)
		}
		return need(l.Append(nil, true))(t)
	}
	counters := func(change func(n *codec.Counters)) []byte {
		n := need(codec.DecodeCounters(get(codec.CollectionKey(codec.KindCounters, id))))(t)
		change(&n)
		return n.Append(nil)
	}
	countersKey := codec.CollectionKey(codec.KindCounters, id)
	bit := func(i int) func([]byte) []byte { return func(b []byte) []byte { b[i] ^= 1; return b } }
	keysBlock := codec.NumberKey(codec.KindRowKeys, id, 0)
	rowCodes := codec.SpaceBlockKey(codec.KindRowCodes, id, other.ID, 0)
	codes := codec.SpaceBlockKey(codec.KindCodes, id, other.ID, 0)
	live := codec.RowsKey(id, codec.SetLive, 0, 0)
	image := codec.RowsKey(id, codec.SetModality, 0, 0)
	pending := codec.OnlineRowsKey(id, active.ID, codec.SetPending, 0)
	lessons := codec.LessonsKey(id, other.ID, 0)
	projections := codec.SpaceBlockKey(codec.KindProjection, id, other.ID, 0)
	taught := need(codec.DecodeBlock(get(lessons)))(t)
	title := codec.FieldRowsKey(id, 1, 0, "title 1")
	word, gram := codec.FieldWordsKey(id, 1, 0, "\x02title"), codec.FieldWordsKey(id, 1, 0, "\x01e 1")
	negative := codec.FieldRowsKey(id, 0, 0, string([]byte{codec.SliceOf(3)}))
	var posting, carriers []byte
	var in []uint32
	for _, r := range records(t, d) {
		switch r.key[0] {
		case codec.KindSubstring:
			if posting == nil && bytes.HasPrefix(r.key, codec.SubstringKey(id, other.ID, 0, 0)[:9]) {
				var err error
				if in, err = codec.AppendPostingCodes(nil, r.value); err == nil && len(in) > 0 {
					posting = r.key
				}
			}
		case codec.KindCodeRows:
			if l, err := codec.DecodeLayer(r.value); err == nil && l.Added.GetCardinality() > 2 {
				carriers = r.key
			}
		}
	}
	index := v.Indexes[0] // of images
	without := roaring.AndNot(v.Live, v.Presence[index.Modality]).Minimum()
	covering := func(rows uint64) []byte {
		x := *index.VectorIndex
		x.Covered = rows
		return need(x.Encode())(t)
	}
	indexKey, entries := codec.NumberKey(codec.KindIndex, id, index.ID),
		codec.ChunkKey(codec.KindEntries, id, index.ID, 0)
	centre, stale := codec.ChunkKey(codec.KindCentre, id, index.ID, 0),
		codec.ChunkKey(codec.KindStale, id, index.ID, 0)
	made := need(codec.DecodeBlock(get(entries)))(t)
	entry, _ := made.Lookup(byte(row))
	gone := func([]byte) []byte { return nil }
	deep := []string{"features of another", "projection deleted", "lesson", "entry"}
	for _, c := range []struct {
		name    string
		key     []byte
		value   []byte // nil: deleted
		record  string // of a finding
		problem string
	}{
		{"unknown kind", []byte{0x77, 1}, []byte("x"), "key", "unknown kind 77"},
		{"unknown collection", codec.NumberKey(codec.KindItem, 99, 1), []byte("x"), "keys",
			"no such collection"},
		{"unknown space", codec.LessonsKey(id, 88, 1), []byte("x"), "keys", "no such space"},
		{"short key", []byte{codec.KindItem, 0, 0}, []byte("x"), "key", "keys of kind 11 are longer"},
		{"key of another length", append(codec.NumberKey(codec.KindItem, id, 1), 5), []byte("x"), "items",
			"10 bytes, its kind has 9"},
		{"name", codec.NameKey("main"), nil, "name of the collection", "missing"},
		{"name of nothing", codec.NameKey("other"), []byte{0, 0, 0, 77}, "name of the collection",
			"collection 77"},
		{"descriptor", codec.CollectionKey(codec.KindCollection, id), []byte("{}"), "descriptor",
			"not looked at"},
		{"counters", countersKey, []byte("x"), "counters", "the spaces of the collection are not looked at"},
		{"items", countersKey, counters(func(n *codec.Counters) { n.Items-- }), "counters",
			"items, the live set has"},
		{"next row", countersKey, counters(func(n *codec.Counters) { n.NextRow = 118 }), "item in row 121",
			"the next row is 118"},
		{"active", countersKey, counters(func(n *codec.Counters) { n.ActiveSpace = 44 }), "counters",
			"active space is 44"},
		{"taught", countersKey, counters(func(n *codec.Counters) { n.Spaces[0].Taught++ }), "counters",
			"rows have taught"},
		{"retraction number", countersKey, counters(func(n *codec.Counters) { n.Spaces[0].NextRetraction++ }),
			"retraction", "missing, the next one"},
		{"coded", countersKey, counters(func(n *codec.Counters) { n.Spaces[0].Coded-- }), "counters",
			"items have a code"},
		{"codes", countersKey, counters(func(n *codec.Counters) { n.Spaces[0].Codes-- }), "counters",
			"distinct codes"},
		{"next code", countersKey,
			counters(func(n *codec.Counters) {
				s := &n.Spaces[0]
				s.Codes--
				s.NextCode, s.Posted = s.Codes, s.Codes
			}), "code", "the next one is"},
		{"posted", countersKey, counters(func(n *codec.Counters) { n.Spaces[0].Posted = 0 }), "posting",
			"too much: code number 0"},
		{"activate", countersKey, counters(func(n *codec.Counters) { n.Spaces[0].Activate = true }),
			"counters", "not being built"},
		{"built", countersKey, counters(func(n *codec.Counters) { n.Spaces[0].Built = 3 }), "counters",
			"rows below 3"},
		{"label", codec.NumberKey(codec.KindLabel, id, 0), nil, "label 0", "missing"},
		{"label twice", codec.NumberKey(codec.KindLabel, id, 1), get(codec.NumberKey(codec.KindLabel, id, 0)),
			"label 1", "as is label 0"},
		{"row of a key", codec.ItemKey(id, "k25"), []byte{0, 0, 0, 26}, `row of key "k25"`,
			"too much: row 26, against key of row 26"},
		{"row of a key deleted", codec.ItemKey(id, "k25"), nil, `row of key "k25"`,
			"missing: row 25, by key of row 25"},
		{"key of a row", keysBlock, block(keysBlock, row, func([]byte) []byte { return []byte("other") }),
			`row of key "k25"`, "too much: row 25, against key of row 25"},
		{"key of a row deleted", keysBlock, block(keysBlock, row, gone), "key of row 25", "missing"},
		{"key of no row", keysBlock, block(keysBlock, 200, func([]byte) []byte { return []byte("new") }),
			"live rows", "missing: row 200, by key of row 200"},
		{"item deleted", codec.NumberKey(codec.KindItem, id, row), nil, "item in row 25", "missing"},
		{"item damaged", codec.NumberKey(codec.KindItem, id, row), []byte{7}, "item in row 25",
			"does not start with version"},
		{"live", live, layer(live, row), "live rows", "missing: row 25, by item in row 25"},
		{"live without item", live, layer(live, 300), "item in row 300", "missing"},
		{"label set", codec.RowsKey(id, codec.SetLabel, 0, 0),
			layer(codec.RowsKey(id, codec.SetLabel, 0, 0), 119), "", ""},
		{"presence", image, layer(image, 119), "", ""},
		{"string field", title, layer(title, row), `rows whose field "title" is "title 1"`,
			"row 25, against item in row 25"},
		{"slice", negative, layer(negative, row), `rows by field "year", slice`, "missing: row 25"},
		{"slice of a row without the field", negative, layer(negative, 28), `rows by field "year", slice`,
			"too much: row 28"},
		{"no slice", codec.FieldRowsKey(id, 0, 0, "xx"), get(live), `rows by field "year", slice`,
			"no such slice"},
		{"field not indexed", codec.FieldRowsKey(id, 4, 0, "x"), get(live), `rows whose field "note"`,
			"not indexed"},
		{"container of no item", codec.FieldRowsKey(id, 1, 9, "x"), get(title),
			`rows whose field "title" is "x"`, "against item in row"},
		{"word", word, layer(word, row), `rows whose field "title" has the word "title"`, "missing: row 25"},
		{"characters", gram, layer(gram, row), `rows whose field "title" has the characters "e 1"`, "row 25"},
		{"unknown term", codec.FieldWordsKey(id, 1, 0, "x"), get(word),
			`rows whose field "title" has the unknown term 78`,
			"against item in row"},
		{"words of a field without", codec.FieldWordsKey(id, 4, 0, "\x02x"), get(live),
			`rows whose field "note" has the word "x"`, "no index of words"},
		{"features deleted", codec.FeatureKey(id, row, 0), nil, `features "image" of row 25`, "missing"},
		{"features damaged", codec.FeatureKey(id, row, 0), []byte{1, 2}, `features "image" of row 25`,
			"bytes for 8 dimensions"},
		{"features of nothing", codec.FeatureKey(id, 300, 0), get(codec.FeatureKey(id, row, 0)),
			`rows with modality "image"`, "missing: row 300"},
		{"features of another", codec.FeatureKey(id, row, 0), get(codec.FeatureKey(id, 26, 0)),
			"projection of row 25", "not that of its features"},
		{"space", codec.NumberKey(codec.KindSpace, id, other.ID), nil, "space", "missing"},
		{"model", codec.ChunkKey(codec.KindModel, id, other.ID, 0),
			get(codec.ChunkKey(codec.KindModel, id, active.ID, 0)), "space", "bytes"},
		{"model chunk", codec.ChunkKey(codec.KindModel, id, other.ID, 4), []byte("x"), "model",
			"chunk 4 of 1"},
		{"statistics", codec.ChunkKey(codec.KindStatistics, id, other.ID, 0), nil, "statistics",
			"chunk 0 of 1"},
		{"revision in use", codec.RevisionKey(id, other.ID, 2, 1), nil, "revision 2", "in use: chunk 0 of 1"},
		{"revision that is kept", codec.RevisionKey(id, other.ID, 2, 0), nil, "revision", "missing"},
		{"revision to come", codec.RevisionKey(id, other.ID, 9, 0), []byte("{}"), "revision 9",
			"the revision in use is 2"},
		{"code of a row", rowCodes, block(rowCodes, row, bit(0)), "rows of code number", "row 25"},
		{"code of a row deleted", rowCodes, block(rowCodes, row, gone), "code of row 25", "missing"},
		{"provenance", rowCodes, block(rowCodes, row, func(b []byte) []byte { b[4] = 9; return b }),
			"code of row 25", "unknown provenance 9"},
		{"revision of a code", rowCodes, block(rowCodes, row, func(b []byte) []byte { b[6] = 200; return b }),
			"code of row 25", "of revision 200"},
		{"code of no item", rowCodes, block(rowCodes, 254, func([]byte) []byte {
			return codec.RowCode{Provenance: 1, Revision: 1}.Append(nil)
		}), "code of row 254", "no item"},
		{"code", codes, block(codes, 0, bit(0)), "posting", "missing: code number 0"},
		{"row beside a code", codes, block(codes, 0, func(b []byte) []byte { b[len(b)-4] ^= 1; return b }),
			"code number 0", "too much: row"},
		{"code deleted", codes, block(codes, 0, gone), "posting", "against code number 0"},
		{"carriers", carriers, layer(carriers, 300), "rows of code number", "too much: row 300"},
		{"posting", posting, codec.AppendPosting(nil, append(slices.Clone(in), 5000), nil), "posting",
			"too much: code number 5000"},
		{"posting lacks one", posting, codec.AppendPosting(nil, in[1:], nil), "posting",
			fmt.Sprintf("missing: code number %d", in[0])},
		{"posting of no substring", codec.SubstringKey(id, other.ID, 9, 3), get(posting),
			"posting 3 of substring 9", "2 substrings"},
		{"projection", projections, block(projections, row, bit(9)), "projection of row 25", ""},
		{"projection deleted", projections, block(projections, row, gone), "projection of row 25", "missing"},
		{"pending", pending, layer(pending, 300), "rows that the online step has not seen", "row 300"},
		{"unknown online set", codec.OnlineRowsKey(id, other.ID, 7, 0), get(live), "rows of set 7",
			"no such set"},
		{"lesson of no row", lessons, block(lessons, 250, func([]byte) []byte { return make([]byte, 8) }),
			"lesson of row 250", "of revision 0"},
		{"lesson", lessons, block(lessons, uint32(taught.Offset(0)), bit(4)), "statistics",
			"not what rows have taught"},
		{"index that covers too much", indexKey, covering(v.NextRow + 5), "index 1 of vectors",
			"the next row is"},
		{"index that covers too little", indexKey, covering(index.Covered - 9), "entry of row",
			"the index covers"},
		{"index deleted", indexKey, nil, "index 1 of vectors", "there is no such index"},
		{"centre", centre, nil, "entry of row", "in cell 0, which has no centre"},
		{"stale row", stale, layer(stale, uint32(index.Covered)), "stale rows of index 1",
			"the index covers"},
		{"entry", entries, block(entries, row, bit(5)), "entry of row 25 in index 1",
			"not that of the vector"},
		{"entry deleted", entries, block(entries, row, gone), "entry of row 25 in index 1", "missing"},
		{"entry of no vector", entries, block(entries, without, func([]byte) []byte { return entry }),
			fmt.Sprintf("entry of row %d", without), "has no vector"},
	} {
		t.Run(c.name, func(t *testing.T) {
			stopIf(t, c.key == nil, "there is no such record")
			before, closer, err := db.State(d).Engine.DB.Get(c.key)
			r := keyValue{key: c.key}
			if err == nil {
				r.value = slices.Clone(before)
				closer.Close()
			}
			keyValue{c.key, c.value}.put(t, d)
			defer r.put(t, d)
			found, _ := dbkit.Findings(t, d, db.VerifyOptions{Deep: slices.Contains(deep, c.name)})
			if !slices.ContainsFunc(found, func(f report.Finding) bool {
				_, err := hex.DecodeString(f.Key)
				return err == nil && f.Key != "" && strings.HasPrefix(f.Record, c.record) &&
					strings.Contains(f.Problem, c.problem)
			}) {
				t.Errorf("found %v", found)
			}
			for _, f := range found { // a finding names the space that calls take
				if f.Space == 0 || f.Space == 88 {
					continue
				}
				fine(t, errOf(main.InSpace(f.Space, 0)), f)
			}
			failIf(t, len(found) > 40, "%d findings", len(found))
		})
	}
}

// A lost number of the next collection is one finding, however many collections there are.
func TestVerifyOfALostNumber(t *testing.T) {
	d := dbkit.MustOpen(t, t.TempDir(), nil)
	defer dbkit.MustClose(t, d)
	for _, name := range []string{"a", "b", "c"} {
		need(d.CreateCollection(ctx, name, db.Schema{Bits: 16}))(t)
	}
	keyValue{codec.DatabaseKey(codec.RecordNextID), nil}.put(t, d)
	found, _ := dbkit.Findings(t, d, db.VerifyOptions{})
	failIf(t, len(found) != 1 || found[0].Record != "number of the next collection" ||
		found[0].Problem != "missing", "found %v", found)
}

// A row that should have a code and has none is found where all counts fit: its code was to be made again,
// and the set of such rows is lost.
func TestVerifyMissesCodes(t *testing.T) {
	d, c, _ := labelWorld(t, vfs.NewMem(), 60)
	bare := []*db.Item{{Key: "a", Labels: []string{"late"}}, {Key: "b"}}
	// without vectors, and with a label that the model does not know
	dbkit.PutAll(t, d, c, bare)
	must(t, taught(c).GrowLabels(ctx, 0, new(report.Update))) // the code is left to be made
	if found, _ := dbkit.Findings(t, d, db.VerifyOptions{}); len(found) > 0 {
		t.Fatalf("a code that is to be made is found missing: %v", found)
	}
	lost := 0
	for _, r := range records(t, d) {
		if r.key[0] != codec.KindOnlineRows {
			continue
		}
		if set, _ := codec.OnlineRowsKeyParts(r.key); set == codec.SetRecode {
			keyValue{r.key, nil}.put(t, d)
			lost++
		}
	}
	found, _ := dbkit.Findings(t, d, db.VerifyOptions{})
	failIf(t, lost == 0 || len(found) != 1 || found[0].Record != "code of row 60" ||
		found[0].Problem != "missing", "%d records are lost, and found is %v", lost, found)
}

// An item without vectors, labels and fields is in no other set of rows: verify misses it all the same.
func TestVerifyMissesABareItem(t *testing.T) {
	d, _ := openNew(t, "db", &db.Options{FS: vfs.NewMem()}, dbkit.PairsSchema, &db.Item{Key: "bare"})
	defer d.Close()
	for _, r := range records(t, d) {
		if r.key[0] == codec.KindItem {
			keyValue{key: r.key}.put(t, d)
		}
	}
	found := 0
	need(d.Verify(ctx, db.VerifyOptions{}, func(f report.Finding) error {
		found++
		t.Log(f)
		return nil
	}))(t)
	failIf(t, found == 0, "the item is gone, and nothing was found")
}
