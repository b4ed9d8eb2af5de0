package db_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"
	"runtime"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/store"
)

// FuzzRecords gives any record of a small database any value, whose checksums are right, as
// a stranger could. The database opens or says why not; then whatever is done with it
// ends, with an error or without, in bounded memory and without a panic; and Verify is
// not disturbed either.
func FuzzRecords(f *testing.F) {
	mem := vfs.NewMem()
	d := smallOfAllKinds(f, mem)
	all := records(f, d)
	dbkit.MustClose(f, d)
	seen := map[byte]int{}
	for i, r := range all {
		if seen[r.key[0]]++; seen[r.key[0]] == 1 && !testing.Short() {
			f.Add(uint16(i), r.value[:len(r.value)/2])
		}
		if r.key[0] == codec.KindCounters { // numbers that nothing stands behind
			if n, err := codec.DecodeCounters(r.value); err == nil && len(n.Spaces) > 0 {
				n.Spaces[0].Codes, n.Spaces[0].NextCode = 1<<31, 1<<31
				f.Add(uint16(i), n.Append(nil))
			}
		}
	}
	if len(seen) < 20 {
		f.Fatalf("%d kinds of records: %x", len(seen), seen)
	}
	f.Fuzz(func(t *testing.T, i uint16, value []byte) {
		r := all[int(i)%len(all)]
		if bytes.Equal(value, r.value) {
			return
		}
		if kind := r.key[0]; kind == codec.KindModel || kind == codec.KindStatistics || kind == codec.KindRevision && codec.LastNumber(r.key) > 0 {
			value = resealed(value)
		}
		fsys := vfs.NewMem()
		need(vfs.Clone(mem, fsys, "db", "db"))(t)
		writeRecord(t, fsys, r.key, value)
		before := totalAlloc()
		useWhatever(t, fsys)
		if n := totalAlloc() - before; n > 512<<20 {
			t.Errorf("%d MiB were allocated for a value of %d bytes under %x", n>>20, len(value), r.key)
		}
	})
}

func totalAlloc() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// smallOfAllKinds makes a database that has nearly every kind of record, few of each.
func smallOfAllKinds(t testing.TB, mem *vfs.MemFS) *db.DB {
	d := dbkit.MustOpen(t, "db", &db.Options{FS: mem})
	c := need(d.CreateCollection(ctx, "main", dbkit.PairsSchema))(t)
	items := dbkit.ViewItems(36, 1)
	for i, it := range items {
		it.Fields = map[string]any{"year": i % 5, "title": "x"}
	}
	putAll(t, c, items)
	dbkit.MustTrain(t, c, dbkit.TinyTraining(1))
	dbkit.MustUpdate(t, c, db.UpdateOptions{Teacher: db.TeacherLabels})
	putAll(t, c, items[3:9])
	need(c.Delete(ctx, "k7"))(t)
	codes := need(d.CreateCollection(ctx, "codes", db.Schema{Bits: 16}))(t)
	for i := range 9 {
		need(codes.Put(ctx, &db.Item{Key: string(rune('a' + i)), Code: []byte{byte(i % 3), 1}}))(t)
	}
	return d
}

// crc32c is the table of the checksums of records and cursors.
var crc32c = crc32.MakeTable(crc32.Castagnoli)

// resealed gives bytes the checksum at their end that is right.
func resealed(b []byte) []byte {
	if len(b) < 4 {
		return b
	}
	b = bytes.Clone(b)
	n := len(b) - 4
	binary.LittleEndian.PutUint32(b[n:], crc32.Checksum(b[:n], crc32c))
	return b
}

// writeRecord writes a record into the store of a closed database.
func writeRecord(t testing.TB, fsys vfs.FS, key, value []byte) {
	t.Helper()
	cfg := db.StoreConfig(&db.Options{FS: fsys})
	kv := need(store.Open(fsys.PathJoin("db", store.StoreName), cfg, store.NewLog(cfg.Signals), false))(t)
	must(t, errors.Join(kv.Set(key, value, pebble.Sync), kv.Close()))
}

// useWhatever opens a database that a stranger has made and does everything with it.
func useWhatever(t testing.TB, fsys vfs.FS) {
	opts := &db.Options{FS: fsys, MustExist: true, CacheBytes: 1 << 20}
	expected := func(what string, err error) {
		t.Helper()
		if errors.Is(err, db.ErrFailed) { // as after a panic of the committer
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := db.VerifyFolder(ctx, "db", opts, db.VerifyOptions{Deep: true}, func(db.Finding) error { return nil }); err != nil && !errors.Is(err, db.ErrFormat) {
		t.Errorf("verify: %v", err)
	}
	d, err := db.Open("db", opts)
	if err != nil {
		if !errors.Is(err, db.ErrCorrupt) && !errors.Is(err, db.ErrFormat) {
			t.Errorf("open: %v", err)
		}
		return
	}
	defer func() { expected("close", d.Close()) }()
	names := need(d.Collections())(t)
	for _, name := range names {
		c := dbkit.MustCollection(t, d, name)
		seen := 0
		for _, err := range c.Items(ctx) {
			expected("items", err)
			if seen++; seen > 1000 {
				t.Fatal("more items than were put")
			}
		}
		s, err := c.Stats()
		expected("stats", err)
		q := db.Query{K: 5, Code: make([]byte, 2)}
		if s != nil && s.Bits <= codec.MaxBits {
			q.Code = make([]byte, s.Bits/8)
		}
		for _, plan := range []db.Plan{db.PlanAuto, db.PlanScan, db.PlanDisk, db.PlanBlockScan} {
			q.Plan = plan
			_, err = c.Search(ctx, q)
			expected("search", err)
		}
		_, err = c.Search(ctx, db.Query{Key: "k3"})
		expected("search by key", err)
		_, err = c.CountWhere(ctx, "label = 'class0' AND year > 2")
		expected("count", err)
		it := &db.Item{Key: "new", Labels: []string{"class0"}, Code: []byte{1, 2}}
		if s != nil && len(s.Modalities) > 0 {
			it.Code, it.Vectors = nil, map[string][]float32{"image": make([]float32, 8)}
		}
		expected("put", dbkit.Second(c.Put(ctx, it)))
		_, err = c.Delete(ctx, "k4", "b")
		expected("delete", err)
		if it.Vectors != nil {
			_, err = c.Update(ctx, db.UpdateOptions{Teacher: db.TeacherLabels})
			expected("update", err)
			_, err = c.Train(ctx, dbkit.TinyTraining(2))
			expected("train", err)
		}
	}
}

// FuzzDescriptors: what stands in JSON is refused, or reads the same when it is written
// again; a marker of others is none of ours.
func FuzzDescriptors(f *testing.F) {
	shared := db.Schema{Modalities: []db.Modality{{Name: "image", Dim: 8, Metric: db.L2}, {Name: "text", Dim: 8, SpaceOf: "image"}}}
	for _, schema := range []db.Schema{dbkit.PairsSchema, {Bits: 16}, shared} {
		d := &record.Descriptor{ID: 1, Name: "main", Bits: schema.Bits, Modalities: db.StoredModalities(schema.Modalities), Fields: db.StoredFields(schema.Fields)}
		must(f, d.Settle())
		b := need(d.Encode())(f)
		f.Add(b)
	}
	f.Add([]byte(`{"fddhdb":"database","format":0}`))
	f.Add([]byte(`{"fddhdb":"database","format":99}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if d, err := record.DecodeDescriptor(b); err == nil {
			enc := need(d.Encode())(t)
			again := need(record.DecodeDescriptor(enc))(t)
			if enc2, err := again.Encode(); err != nil || !bytes.Equal(enc, enc2) {
				t.Fatalf("%s became %s, %v", enc, enc2, err)
			}
		}
		mem := vfs.NewMem()
		writeFile(t, mem, store.MarkerName, b)
		var m struct {
			FDDHDB string
			Format int
		}
		ours := json.Unmarshal(b, &m) == nil && m.FDDHDB == "database"
		switch err := store.CheckMarker(mem, ""); {
		case err == nil:
			if !ours || m.Format != db.Format {
				t.Fatalf("%q is taken for a marker", b)
			}
		case errors.Is(err, db.ErrNotDatabase), errors.Is(err, db.ErrFormat) && ours:
		default:
			t.Fatal(err)
		}
	})
}

func writeFile(t testing.TB, fsys vfs.FS, name string, b []byte) {
	t.Helper()
	file := need(fsys.Create(name, vfs.WriteCategoryUnspecified))(t)
	_, err := file.Write(slices.Clone(b)) // which a file in memory spoils under the race detector
	must(t, errors.Join(err, file.Sync(), file.Close()))
}
