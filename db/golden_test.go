package db_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	gocmp "github.com/google/go-cmp/cmp"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
)

// goldenListing says what is in a database: everything that users can see and that is
// stored, but for spaces that are being built.
func goldenListing(t testing.TB, d *db.DB) string {
	t.Helper()
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for m, err := range d.Marks(ctx, "") {
		check(err)
		say("mark %s: %q", m.Name, m.Value)
	}
	names, err := d.Collections()
	check(err)
	for _, name := range names {
		c := dbkit.MustCollection(t, d, name)
		indexes, err := c.VectorIndexes()
		check(err)
		for _, x := range indexes {
			type point struct { // as it was first listed
				K                            int
				Reach, Recall, Error, Probes float64
			}
			var points []point
			for _, p := range x.Measured {
				points = append(points, point{p.K, p.Reach, p.Recall, p.Error, p.Probes})
			}
			say("index %d of %s: complete %v, %d cells, recall %v, measured %v", x.Index, x.Modality, x.Complete, x.Cells, x.Recall, points)
		}
		encoders, err := c.Encoders()
		check(err)
		for _, e := range encoders {
			say("encoder of %s: of %s, %q", e.Modality, e.Input, e.Command)
		}
		schema, err := c.Schema()
		check(err)
		labels, err := c.Labels()
		check(err)
		say("collection %s: %d bits, modalities %v, fields %v, labels %q", name, schema.Bits, goldenModalities(schema), schema.Fields, labels)
		spaces, err := c.Spaces(ctx)
		check(err)
		for _, s := range spaces {
			if s.State == db.SpaceBuilding {
				continue
			}
			say("space %d: %s, previous %v, parent %d, %d bits, %d items, %d codes, %d have taught, %d pending, model %s",
				s.Space, s.State, s.Previous, s.Parent, s.Bits, s.Items, s.Codes, s.Taught, s.Pending, s.Checksum)
			for _, r := range s.Revisions {
				say("revision %d: of %d, pinned %v, teacher %q, %d items", r.Revision, r.Parent, r.Pinned, r.Teacher, r.Items)
			}
			in, err := c.InSpace(s.Space)
			check(err)
			for it, err := range in.Items(ctx) {
				check(err)
				say("%s: code %x %s", it.Key, it.Code, it.CodeFrom)
			}
		}
		for it, err := range c.Items(ctx) {
			check(err)
			fields := slices.Sorted(maps.Keys(it.Fields))
			for i, name := range fields {
				fields[i] = fmt.Sprintf("%s=%v", name, it.Fields[name])
			}
			say("%s: labels %q, fields %q, data %x", it.Key, it.Labels, fields, goldenSum(it))
		}
		for _, where := range []string{"label = 'class1'", "year > 1800", "price < 5 AND new = TRUE", "title IN ('title 2', 'title 3')", "n >= 350", "at < '1970'", "seen >= '1700'"} {
			n, err := c.CountWhere(ctx, where)
			if _, unknown := errors.AsType[*db.WhereError](err); !unknown {
				check(err)
				say("%s: %d", where, n)
			}
		}
		for _, m := range schema.Modalities { // answers by vectors
			if m.Metric == "" && m.SpaceOf == "" {
				continue
			}
			for _, key := range []string{"k5", "k20"} {
				r, err := c.Search(ctx, db.Query{Key: key, From: m.Name, K: 6})
				if errors.Is(err, db.ErrInvalid) { // the item lacks the vector
					continue
				}
				check(err)
				say("search from %s of %q:%s", m.Name, key, goldenHits(r))
			}
		}
		for _, key := range []string{"k5", "k20", "c0010"} {
			for _, m := range append([]db.Modality{{}}, schema.Modalities...) {
				for _, rerank := range []db.Rerank{db.RerankNone, db.RerankProjection} {
					r, err := c.Search(ctx, db.Query{Key: key, From: m.Name, To: m.Name, K: 6, Rerank: rerank})
					if errors.Is(err, db.ErrNotFound) || errors.Is(err, db.ErrNoModel) || errors.Is(err, db.ErrInvalid) {
						continue
					}
					check(err)
					say("search from %s of %q, %v: %v", m.Name, key, rerank, goldenHits(r))
				}
			}
		}
	}
	return b.String()
}

// goldenModalities lists modalities as listings of before metrics have them, and what a modality has
// of these.
func goldenModalities(s db.Schema) (all []string) {
	for _, m := range s.Modalities {
		text := fmt.Sprint(m.Name, " ", m.Dim, " ", m.Sparse)
		if m.Metric != "" || m.SpaceOf != "" {
			text += fmt.Sprintf(" metric %q, space of %q", m.Metric, m.SpaceOf)
		}
		all = append(all, "{"+text+"}")
	}
	return all
}

func goldenHits(r *db.Result) string {
	var b strings.Builder
	for _, h := range r.Hits {
		fmt.Fprintf(&b, " %s:%d", h.Key, max(h.Distance, 0)) // of answers by vectors the stored answers say 0
	}
	return b.String()
}

// goldenSum is a checksum of the vectors and the payload of an item.
func goldenSum(it *db.Item) []byte {
	h := fnv.New64a()
	number := func(x uint32) { h.Write(binary.LittleEndian.AppendUint32(nil, x)) }
	for _, name := range slices.Sorted(maps.Keys(it.Vectors)) {
		h.Write([]byte(name))
		for _, x := range it.Vectors[name] {
			number(math.Float32bits(x))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(it.Sparse)) {
		h.Write([]byte(name))
		for i, x := range it.Sparse[name].Index {
			number(x)
			number(math.Float32bits(it.Sparse[name].Value[i]))
		}
	}
	h.Write(it.Payload)
	return h.Sum(nil)
}

// checkGolden opens a database for reading and compares what is in it with the listing.
func checkGolden(t testing.TB, what string, fsys vfs.FS, want string) *db.DB {
	t.Helper()
	d, err := db.Open("golden", &db.Options{FS: fsys, ReadOnly: true})
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if diff := gocmp.Diff(strings.Split(want, "\n"), strings.Split(goldenListing(t, d), "\n")); diff != "" {
		t.Errorf("%s: %.2000s", what, diff)
	}
	dbkit.MustClose(t, d)
	return d
}

func verifyGolden(t testing.TB, what string, fsys vfs.FS) {
	t.Helper()
	v, err := db.VerifyFolder(ctx, "golden", &db.Options{FS: fsys}, db.VerifyOptions{Deep: true}, func(f db.Finding) error {
		t.Errorf("%s: %s", what, f)
		return nil
	})
	if err != nil || v.CodesChecked == 0 {
		t.Errorf("%s: %+v, %v", what, v, err)
	}
}

// A database that an earlier build of this format wrote and did not close is read and written by this one.
func TestGolden(t *testing.T) {
	dbkit.LongTest(t)
	mem := vfs.NewMem()
	unpackFolder(t, mem, "golden", goldenArchive)
	text := need(os.ReadFile(goldenText))(t)
	verifyGolden(t, "as it is", mem)
	d := checkGolden(t, "as it is", mem, strings.ReplaceAll(string(text), "\r\n", "\n"))
	uuid := d.UUID()
	d = dbkit.MustOpen(t, "golden", &db.Options{FS: mem})
	if r := d.Recovery(); d.UUID() != uuid || r.Problem != "" || len(r.Losses) > 0 {
		t.Errorf("UUID %q, and then %q: %+v", uuid, d.UUID(), r)
	}
	goldenWrites(t, d)
	after := goldenListing(t, d)
	dbkit.MustClose(t, d)
	verifyGolden(t, "after writing", mem)
	checkGolden(t, "after writing", mem, after)
}

// goldenWrites changes something in every collection, and waits until the space is complete
// that was being built.
func goldenWrites(t *testing.T, d *db.DB) {
	t.Helper()
	shared := dbkit.MustCollection(t, d, "shared")
	need(shared.Reindex(ctx, db.ReindexOptions{}))(t)
	goldenPut(t, shared, goldenItems(100)[20:24])
	need(shared.Merge(ctx, &db.Item{Key: "k30", Labels: []string{"new label"}, Fields: map[string]any{"year": 7}}))(t)
	need(shared.Update(ctx, db.UpdateOptions{Teacher: db.TeacherLabels}))(t)
	putMarks(t, d, "position", "21", "log/1", "", "log/2", "two")
	codes := dbkit.MustCollection(t, d, "codes")
	goldenPut(t, codes, []*db.Item{{Key: "c0003", Code: []byte{200, 200}}, {Code: []byte{0, 0}}})
	need(dbkit.MustCollection(t, d, "aims").Delete(ctx, "k10"))(t)
}
