package db_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"
	"runtime/metrics"
	"slices"
	"strconv"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/internal/effort"
)

// A stranger gives out databases that are like one of ours, but for some records.
type stranger struct {
	mem *vfs.MemFS
	dir string
	all []keyValue
}

func newStranger(t testing.TB) *stranger {
	mem := vfs.NewCrashableMem()
	d := verified(t, &db.Options{FS: mem})
	s := &stranger{mem: mem, dir: db.State(d).Engine.Dir, all: records(t, d)}
	must(t, d.Close())
	return s
}

// lies are numbers that a record may hold in place of its own.
var lies = []uint64{0, 1, 255, 1 << 16, 1<<31 - 1, 1 << 31, 1<<32 - 1, 1 << 32, 1 << 40, 1 << 60, 1<<63 - 1,
	1<<64 - 1}

// lie changes a record: how says what of it, at says where.
func (s *stranger) lie(r keyValue, how byte, at int, x byte) keyValue {
	key, b := slices.Clone(r.key), slices.Clone(r.value)
	if len(b) == 0 {
		return keyValue{key, b}
	}
	i := at % len(b)
	number := lies[int(x)%len(lies)]
	switch how % 8 {
	case 0:
		b[i] ^= x | 1
	case 1:
		b = b[:i]
	case 2: // a length or a count of the binary forms
		b = slices.Replace(b, i, min(i+1, len(b)), binary.AppendUvarint(nil, number)...)
	case 3:
		copy(b[i:], binary.LittleEndian.AppendUint64(nil, number))
	case 4: // a number of JSON
		from := i
		for from < len(b) && (b[from] < '0' || b[from] > '9') {
			from++
		}
		to := from
		for to < len(b) && b[to] >= '0' && b[to] <= '9' {
			to++
		}
		b = slices.Replace(b, from, to, strconv.AppendUint(nil, number, 10)...)
	case 5: // where it stands
		n := len(key) - 1
		key[n-at%min(n, 8)] ^= x | 1
	case 6: // all of another record
		b = slices.Clone(s.all[(at<<8|int(x))%len(s.all)].value)
	case 7: // more of it
		b = append(b, b[i:]...)
	}
	if kind := key[0]; (kind == codec.KindModel || kind == codec.KindStatistics) && len(b) > 4 {
		// A checksum keeps nobody from lying.
		end := len(b) - 4
		binary.LittleEndian.PutUint32(b[end:], crc32.Checksum(b[:end], crc32c))
	}
	return keyValue{key, b}
}

// with returns the file system of a database with the changes that the input asks for, 5
// bytes each, and how many bytes they hold.
func (s *stranger) with(t testing.TB, changes []byte) (fsys vfs.FS, bytes int) {
	mem := s.mem.CrashClone(vfs.CrashCloneCfg{})
	cfg := db.StoreConfig(&db.Options{FS: mem})
	kv := need(store.Open(mem.PathJoin(s.dir, store.StoreName), cfg, store.NewLog(nil), false))(t)
	for n := 0; len(changes) >= 6 && n < 16; n++ {
		r := s.all[int(binary.LittleEndian.Uint16(changes))%len(s.all)]
		lie := s.lie(r, changes[2], int(binary.LittleEndian.Uint16(changes[3:])), changes[5])
		must(t, kv.Set(lie.key, lie.value, pebble.NoSync))
		bytes += len(lie.value)
		changes = changes[6:]
	}
	must(t, kv.Close())
	return mem, bytes
}

// use does with a database whatever can be done, and minds no errors but those that no
// record can be to blame for.
func use(d *db.DB) {
	names, _ := d.Collections()
	for _, name := range names {
		c, err := d.Collection(name)
		if err != nil {
			continue
		}
		_, _ = c.Stats(ctx)
		_, _ = c.Spaces(ctx)
		_, _ = c.Labels()
		for range c.Items(ctx, "") {
		}
		for _, expr := range []string{"label = 'c0'", "year > 3",
			"NOT (title = 'title 1' OR price < 7 OR new = true)", "has(image)"} {
			_, _ = c.Count(ctx, expr)
			for range c.Items(ctx, expr) {
			}
		}
		for _, to := range []string{"", "image", "text"} {
			for range c.Codes(ctx, to) {
			}
			for _, plan := range []db.Plan{db.PlanAuto, db.PlanDisk, db.PlanBlockScan} {
				for _, space := range []db.Space{0, 1, 2} {
					c, err := c.InSpace(space, 0)
					if err != nil {
						continue
					}
					q := db.Query{Key: "k5", To: to, Plan: plan, K: 1 << 31}
					if plan == db.PlanDisk {
						q.K = 3 // all postings would take most of the time
					}
					if _, err := c.Search(ctx, q); err != nil && name == "codes" {
						q.Key = "5"
						_, _ = c.Search(ctx, q)
					}
					q.From = "text"
					q.Rerank = db.RerankAuto
					_, _, _ = dbkit.Explain(ctx, c, q, -1)
					q.Rerank = db.RerankAsymmetric
					_, _ = dbkit.CountWithin(c, q, 3)
				}
			}
		}
	}
	_, _ = d.Stats()
	_, _ = d.Verify(ctx, db.VerifyOptions{Deep: true},
		func(f report.Finding) error { _ = f.String(); return nil })
	for _, name := range names {
		c, err := d.Collection(name)
		if err != nil {
			continue
		}
		_ = errOf(c.Put(ctx, &db.Item{Key: "k20", Labels: []string{"c1"}}))
		_ = errOf(c.Put(ctx, &db.Item{Key: "21", Code: []byte{1, 2}}))
		_ = errOf(c.Merge(ctx, &db.Item{Key: "k21", Fields: map[string]any{"year": 8}}))
		_, _ = c.Delete(ctx, "k22", "22")
		_, _ = c.DeleteWhere(ctx, "label = 'c2'")
		_, _ = c.Update(ctx, db.UpdateOptions{GrowLabels: true})
		_, _ = c.RestoreRevision(ctx, 0, 1)
		_, _ = c.Reindex(ctx, db.ReindexOptions{})
		_, _ = c.Rollback(ctx)
		_ = c.DropSpace(ctx, 2)
	}
	_ = d.WaitForIndex(ctx)
	_ = d.Compact(ctx)
}

func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// mostAllocated bounds what opening a small database and doing everything with it once may
// allocate, in all, whatever its records say. What is sound takes a tenth of it.
const mostAllocated = 1 << 30

// open opens what the stranger gives out, and uses it.
func (s *stranger) open(t testing.TB, changes []byte) {
	fsys, n := s.with(t, changes)
	before := allocated()
	d, err := db.Open(s.dir, &db.Options{FS: fsys, CacheBytes: 1 << 20})
	if err == nil {
		use(d)
		err = d.Close()
	}
	grown := allocated() - before
	failIf(t, grown > mostAllocated+uint64(1000*n), "%d MiB were allocated (%v): %x", grown>>20, err, changes)
}

// FuzzOpen opens databases whose records lie, wherever the input says, and does with them
// all that can be done: it ends without a panic, and memory stays bounded.
func FuzzOpen(f *testing.F) {
	s := newStranger(f)
	f.Add([]byte{}) // what is sound
	seen := map[byte]bool{}
	for i, r := range s.all {
		kind := r.key[0]
		if how := 3 * byte(i); !seen[kind] { // a lie of each kind
			seen[kind] = true
			if testing.Short() && len(seen)%4 != 1 {
				continue
			}
			f.Add([]byte{byte(i), byte(i >> 8), how, 3, 0, how + 3})
			if effort.Long() || len(seen)%2 == 0 {
				f.Add([]byte{byte(i), byte(i >> 8), 2, 1, 0, byte(i)})
			}
			if effort.Long() || len(seen)%2 == 1 {
				f.Add([]byte{byte(i), byte(i >> 8), 4, 0, 0, byte(i)})
			}
		}
	}
	f.Fuzz(func(t *testing.T, changes []byte) { s.open(t, changes) })
}

// FuzzRecords gives any record of a small database any value, whose checksums are right, as a stranger could.
// The database opens or says why not; then whatever is done with it ends, with an error or without, in
// bounded memory and without a panic; and Verify is not disturbed either.
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
		if kind := r.key[0]; kind == codec.KindModel || kind == codec.KindStatistics ||
			kind == codec.KindRevision && codec.LastNumber(r.key) > 0 {
			value = resealed(value)
		}
		fsys := vfs.NewMem()
		need(vfs.Clone(mem, fsys, "db", "db"))(t)
		writeRecord(t, fsys, r.key, value)
		before := allocated()
		useWhatever(t, fsys)
		if n := allocated() - before; n > 512<<20 {
			t.Errorf("%d MiB were allocated for a value of %d bytes under %x", n>>20, len(value), r.key)
		}
	})
}

// smallOfAllKinds makes a database that has nearly every kind of record, few of each.
func smallOfAllKinds(t testing.TB, mem *vfs.MemFS) *db.DB {
	d, c := openNew(t, "db", &db.Options{FS: mem}, dbkit.PairsSchema)
	items := dbkit.ViewItems(36, 1)
	for i, it := range items {
		it.Fields = map[string]any{"year": i % 5, "title": "x"}
	}
	train(t, c, items, dbkit.TinyTraining(1))
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
	if _, err := db.VerifyFolder(ctx, "db", opts, db.VerifyOptions{Deep: true},
		func(report.Finding) error { return nil }); err != nil && !errors.Is(err, db.ErrFormat) {
		t.Errorf("verify: %v", err)
	}
	d, err := db.Open("db", opts)
	if err != nil {
		failIf(t, !errors.Is(err, db.ErrCorrupt) && !errors.Is(err, db.ErrFormat), "open: %v", err)
		return
	}
	defer func() { expected("close", d.Close()) }()
	names := need(d.Collections())(t)
	for _, name := range names {
		c := dbkit.MustCollection(t, d, name)
		seen := 0
		for _, err := range c.Items(ctx, "") {
			expected("items", err)
			seen++
			stopIf(t, seen > 1000, "more items than were put")
		}
		s, err := c.Stats(ctx)
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
		_, err = c.Count(ctx, "label = 'class0' AND year > 2")
		expected("count", err)
		it := &db.Item{Key: "new", Labels: []string{"class0"}, Code: []byte{1, 2}}
		if s != nil && len(s.Modalities) > 0 {
			it.Code, it.Vectors = nil, map[string][]float32{"image": make([]float32, 8)}
		}
		expected("put", errOf(c.Put(ctx, it)))
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
	shared := db.Schema{Modalities: []db.Modality{{Name: "image", Dim: 8, Metric: db.L2},
		{Name: "text", Dim: 8, SpaceOf: "image"}}}
	for _, schema := range []db.Schema{dbkit.PairsSchema, {Bits: 16}, shared} {
		d := &record.Descriptor{ID: 1, Name: "main", Bits: schema.Bits,
			Modalities: db.StoredModalities(schema.Modalities), Fields: db.StoredFields(schema.Fields)}
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
			enc2, err := again.Encode()
			stopIf(t, err != nil || !bytes.Equal(enc, enc2), "%s became %s, %v", enc, enc2, err)
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
			stopIf(t, !ours || m.Format != db.Format, "%q is taken for a marker", b)
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

// FuzzVerify changes bytes of what a small database has stored, wherever the input says:
// it is verified without a panic, whatever is found.
func FuzzVerify(f *testing.F) {
	d := verified(f, &db.Options{FS: vfs.NewMem()})
	all := records(f, d)
	f.Add([]byte{0, 0, 0, 0, 1})
	f.Add([]byte{1, 0, 3, 0, 255, 40, 0, 0, 0, 7})
	f.Add(bytes.Repeat([]byte{3, 1, 1, 0, 128, 77, 0, 2, 0, 3}, 20))
	seen := map[byte]bool{}
	for i := range all { // each record once: its length, or whatever stands at its start and end
		kind := all[i].key[0]
		if seen[kind] && (testing.Short() || !effort.Sampled(i, 19)) {
			continue // one of each kind
		}
		seen[kind] = true
		f.Add(binary.LittleEndian.AppendUint16([]byte{byte(i), byte(i >> 8), 1, 0, 0x81, byte(i),
			byte(i >> 8)}, uint16(len(all[i].value)-1)))
	}
	f.Fuzz(func(t *testing.T, changes []byte) {
		changed := map[int]bool{}
		now := map[int][]byte{}
		for ; len(changes) >= 5 && len(changed) < 16; changes = changes[5:] {
			i := int(binary.LittleEndian.Uint16(changes)) % len(all)
			at := int(binary.LittleEndian.Uint16(changes[2:]))
			if !changed[i] {
				changed[i], now[i] = true, slices.Clone(all[i].value)
			}
			switch value := now[i]; {
			case len(value) == 0:
			case changes[4] == 0: // cut
				now[i] = value[:at%len(value)]
			default:
				value[at%len(value)] ^= changes[4]
			}
		}
		for i, value := range now {
			keyValue{all[i].key, append([]byte{}, value...)}.put(t, d)
			defer all[i].put(t, d)
		}
		v, err := d.Verify(ctx, db.VerifyOptions{Deep: true}, func(found report.Finding) error {
			_ = found.String()
			return nil
		})
		if err != nil {
			t.Fatal(err) // a panic is one
		}
		if len(changed) == 0 && v.Findings > 0 {
			t.Errorf("nothing has changed, %d findings", v.Findings)
		}
	})
}
