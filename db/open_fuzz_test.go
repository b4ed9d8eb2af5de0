package db_test

import (
	"encoding/binary"
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
	"github.com/fddhdb/fddhdb/db/internal/store"
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
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	return s
}

// lies are numbers that a record may hold in place of its own.
var lies = []uint64{0, 1, 255, 1 << 16, 1<<31 - 1, 1 << 31, 1<<32 - 1, 1 << 32, 1 << 40, 1 << 60, 1<<63 - 1, 1<<64 - 1}

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
	kv, err := store.Open(mem.PathJoin(s.dir, store.StoreName), cfg, store.NewLog(nil), false)
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; len(changes) >= 6 && n < 16; n++ {
		r := s.all[int(binary.LittleEndian.Uint16(changes))%len(s.all)]
		lie := s.lie(r, changes[2], int(binary.LittleEndian.Uint16(changes[3:])), changes[5])
		if err := kv.Set(lie.key, lie.value, pebble.NoSync); err != nil {
			t.Fatal(err)
		}
		bytes += len(lie.value)
		changes = changes[6:]
	}
	if err := kv.Close(); err != nil {
		t.Fatal(err)
	}
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
		_, _ = c.Stats()
		_, _ = c.Spaces(ctx)
		_, _ = c.Labels()
		for range c.Items(ctx) {
		}
		for _, expr := range []string{"label = 'c0'", "year > 3", "NOT (title = 'title 1' OR price < 7 OR new = true)", "has(image)"} {
			_, _ = c.CountWhere(ctx, expr)
			for range c.ItemsWhere(ctx, expr) {
			}
		}
		for _, to := range []string{"", "image", "text"} {
			for range c.Codes(ctx, to) {
			}
			for _, plan := range []db.Plan{db.PlanAuto, db.PlanDisk, db.PlanBlockScan} {
				for _, space := range []db.Space{0, 1, 2} {
					q := db.Query{Key: "k5", To: to, Plan: plan, Space: space, K: 1 << 31}
					if plan == db.PlanDisk {
						q.K = 3 // all postings would take most of the time
					}
					if _, err := c.Search(ctx, q); err != nil && name == "codes" {
						q.Key = "5"
						_, _ = c.Search(ctx, q)
					}
					q.From = "text"
					q.Rerank = db.RerankAuto
					_, _, _ = c.Explain(ctx, q, -1)
					q.Rerank = db.RerankAsymmetric
					_, _ = c.CountRadius(ctx, q, 3)
				}
			}
		}
		for h, err := range c.Neighbors(ctx, db.Query{Key: "k7"}) {
			if err == nil {
				_, _ = c.Get(ctx, h.Key)
			}
		}
	}
	_, _ = d.Stats()
	_, _ = d.Verify(ctx, db.VerifyOptions{Deep: true}, func(f db.Finding) error { _ = f.String(); return nil })
	for _, name := range names {
		c, err := d.Collection(name)
		if err != nil {
			continue
		}
		_ = dbkit.Second(c.Put(ctx, &db.Item{Key: "k20", Labels: []string{"c1"}}))
		_ = dbkit.Second(c.Put(ctx, &db.Item{Key: "21", Code: []byte{1, 2}}))
		_ = dbkit.Second(c.Merge(ctx, &db.Item{Key: "k21", Fields: map[string]any{"year": 8}}))
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
	if grown > mostAllocated+uint64(1000*n) {
		t.Errorf("%d MiB were allocated (%v): %x", grown>>20, err, changes)
	}
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
