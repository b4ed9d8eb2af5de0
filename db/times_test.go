package db_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/instant"
)

var timesSchema = db.Schema{Bits: 8, Fields: []db.Field{{"at", db.Time, true}, {"seen", db.Time, false}}}

// Times and their texts come back in UTC and in whole microseconds, also after the database was closed.
func TestTimes(t *testing.T) {
	opts := &db.Options{FS: vfs.NewMem()}
	d := dbkit.MustOpen(t, "db", opts)
	c := need(d.CreateCollection(ctx, "main", timesSchema))(t)
	utc := func(year, month, day, hour, min, sec, micros int) time.Time {
		return time.Date(year, time.Month(month), day, hour, min, sec, micros*1000, time.UTC)
	}
	given := []struct {
		value any
		want  time.Time
	}{
		{time.Date(2024, 5, 1, 12, 30, 0, 123456789, time.FixedZone("", 7200)), utc(2024, 5, 1, 10, 30, 0, 123456)},
		{time.Date(1969, 12, 31, 23, 59, 59, 999_999_999, time.UTC), utc(1969, 12, 31, 23, 59, 59, 999_999)},
		{"2024-05-01T12:30:00.5+02:00", utc(2024, 5, 1, 10, 30, 0, 500_000)},
		{"2024-05-01", utc(2024, 5, 1, 0, 0, 0, 0)},
		{time.Time{}, utc(1, 1, 1, 0, 0, 0, 0)},
		{utc(0, 1, 1, 0, 0, 0, 0), utc(0, 1, 1, 0, 0, 0, 0)},
		{utc(9999, 12, 31, 23, 59, 59, 999_999), utc(9999, 12, 31, 23, 59, 59, 999_999)},
	}
	for i, g := range given {
		need(c.Put(ctx, &db.Item{Key: fmt.Sprint(i), Code: []byte{1}, Fields: map[string]any{"at": g.value, "seen": g.value}}))(t)
	}
	dbkit.MustClose(t, d)
	d = dbkit.MustOpen(t, "db", opts)
	defer func() { dbkit.MustClose(t, d) }()
	c = dbkit.MustCollection(t, d, "main")
	for i, g := range given {
		it, err := c.Get(ctx, fmt.Sprint(i))
		if want := (map[string]any{"at": g.want, "seen": g.want}); err != nil || !reflect.DeepEqual(it.Fields, want) {
			t.Errorf("%v is %v, %v", g.value, it, err)
			continue
		}
		b := need(json.Marshal(it))(t)
		var back db.Item
		must(t, json.Unmarshal(b, &back))
		back.CodeFrom = ""
		need(c.Put(ctx, &back))(t)
		if again, err := c.Get(ctx, it.Key); err != nil || !reflect.DeepEqual(again.Fields, it.Fields) {
			t.Errorf("%s became %v, %v", b, again, err)
		}
	}
	// A time finds the item that it was put with, though it has nanoseconds.
	for _, where := range []string{"at = ?", "seen = ?", "at IN (?)", "at >= ? AND at <= '2024-05-01T10:30:00.123456999Z'"} {
		if n, err := c.CountWhere(ctx, where, given[0].value); err != nil || n != 1 {
			t.Errorf("%s: %d, %v", where, n, err)
		}
	}
	facets, err := c.Facets(ctx, db.FacetQuery{By: "at", Limit: 1, Where: "at > '2024'"})
	if want := (db.FacetCount{Value: given[3].want, Items: 1}); err != nil || facets.Distinct != 4 || facets.Counts[0] != want {
		t.Errorf("%+v, %v", facets, err)
	}
	dbkit.CheckSound(t, d, "times")
}

// What is no time is refused with the name of the field, and nothing is stored.
func TestTimesRefused(t *testing.T) {
	d := dbkit.MustOpen(t, "db", &db.Options{FS: vfs.NewMem()})
	defer func() { dbkit.MustClose(t, d) }()
	c := need(d.CreateCollection(ctx, "main", timesSchema))(t)
	for _, given := range []any{
		nil, 2024, 1.5, true, "", "soon", "01.05.2024", "2024-02-30", strings.Repeat("2024", 10_000), "10000-01-01",
		time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC), time.Unix(math.MaxInt64, 0), time.Unix(math.MinInt64, 0), codec.Time(1 << 62), &time.Time{}, struct{}{},
	} {
		_, err := c.Put(ctx, &db.Item{Key: "k", Code: []byte{1}, Fields: map[string]any{"at": given}})
		if !errors.Is(err, db.ErrInvalid) || !strings.Contains(err.Error(), `field "at"`) || len(err.Error()) > 300 {
			t.Errorf("%.20v: %v", given, err)
		}
	}
	if n, err := c.Count(); n != 0 || err != nil {
		t.Error(n, err)
	}
}

// A stored time that no field can have is damage, which reading and verifying find.
func TestTimesDamaged(t *testing.T) {
	opts := &db.Options{FS: vfs.NewMem()}
	d := dbkit.MustOpen(t, "db", opts)
	defer func() { dbkit.MustClose(t, d) }()
	c := need(d.CreateCollection(ctx, "main", timesSchema))(t)
	need(c.Put(ctx, &db.Item{Key: "k", Code: []byte{1}, Fields: map[string]any{"seen": "2024"}}))(t)
	if codec.LeastTime != codec.Time(instant.Least) || codec.MostTime != codec.Time(instant.Most) {
		t.Error("records and fields have different limits")
	}
	b := need((&codec.ItemRecord{Fields: []codec.Field{{ID: 1, Value: codec.Time(math.MaxInt64)}}}).Append(nil))(t)
	keyValue{codec.NumberKey(codec.KindItem, 1, 0), b}.put(t, d)
	dbkit.MustClose(t, d)
	d = dbkit.MustOpen(t, "db", opts)
	c = dbkit.MustCollection(t, d, "main")
	if it, err := c.Get(ctx, "k"); !errors.Is(err, db.ErrCorrupt) {
		t.Error(it, err)
	}
	found := 0
	_, err := d.Verify(ctx, db.VerifyOptions{}, func(f db.Finding) error {
		found++
		return nil
	})
	if found == 0 {
		t.Errorf("the damage is not found: %v", err)
	}
}
