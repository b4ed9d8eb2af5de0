package parquet

import (
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go/deprecated"

	"github.com/fddhdb/fddhdb/files/table"
)

// int96 returns a time as Spark and Impala used to write it.
func int96(t time.Time) deprecated.Int96 {
	const epoch = 2_440_588
	days := math.Floor(float64(t.Unix()) / 86_400)
	nanos := t.Sub(time.Unix(int64(days)*86_400, 0)).Nanoseconds()
	return deprecated.Int96{uint32(nanos), uint32(nanos >> 32), uint32(days + epoch)}
}

// Dates and timestamps of all units become times.
func TestTimes(t *testing.T) {
	type row struct {
		Day    *int32           `parquet:"day,optional,date"`
		Millis int64            `parquet:"millis,timestamp(millisecond)"`
		Micros int64            `parquet:"micros,timestamp(microsecond)"`
		Nanos  int64            `parquet:"nanos,timestamp(nanosecond)"`
		Old    deprecated.Int96 `parquet:"old"`
		Clock  int64            `parquet:"clock,time(microsecond)"`
	}
	days := func(n int32) *int32 { return &n }
	before := time.Date(1969, 12, 31, 23, 59, 59, 999_999_999, time.UTC)
	after := time.Date(2024, 5, 1, 12, 30, 0, 250_000_000, time.UTC)
	f, err := memory(write(t, []row{
		{days(-719_528), -1, -1, before.UnixNano(), int96(before), 0},
		{nil, after.UnixMilli(), after.UnixMicro(), after.UnixNano(), int96(after), 0},
		{days(math.MaxInt32), 0, 0, 0, int96(after), 0},
		{nil, math.MaxInt64, 0, 0, int96(after), 0},
		{nil, 0, math.MinInt64, 0, int96(after), 0},
		{nil, 0, 0, math.MaxInt64, deprecated.Int96{0, 0, math.MaxUint32}, 0},
		{nil, 0, 0, 0, deprecated.Int96{math.MaxUint32, math.MaxUint32, 2_440_588}, 0},
	}))
	if err != nil {
		t.Fatal(err)
	}
	r := f.items()
	columns := must(r.Columns())(t)
	uses := usesOf(columns)
	for i, c := range columns {
		if isTime := c.Kind == table.Scalars && c.Type == "time"; isTime != (c.Name != "clock") {
			t.Errorf("%+v", c)
		}
		if c.Name == "millis" && c.Example != "1969-12-31T23:59:59.999Z" {
			t.Errorf("%+v", c)
		}
		uses[i].Type = c.Type
	}
	check(t, r.Map(uses))
	micro := time.Microsecond
	for i, want := range []any{
		map[string]any{"day": time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC), "millis": time.UnixMilli(-1).UTC(), "micros": time.UnixMicro(-1).UTC(), "nanos": before.Truncate(micro), "old": before.Truncate(micro)},
		map[string]any{"millis": after, "micros": after, "nanos": after, "old": after},
		`row 2: column "day"`, `row 3: column "millis"`, `row 4: column "micros"`, `row 5: column "old"`,
		map[string]any{"millis": time.Unix(0, 0).UTC(), "micros": time.Unix(0, 0).UTC(), "nanos": time.Unix(0, 0).UTC(), "old": before.Truncate(micro)},
	} {
		var it table.Item
		err := r.Next(&it)
		if says, bad := want.(string); bad {
			if err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "the years 0 to 9999") {
				t.Errorf("row %d: %v", i, err)
			}
		} else if d := cmp.Diff(want, any(it.Fields)); err != nil || d != "" {
			t.Errorf("row %d: %v, %s", i, err, d)
		}
	}
	if err := r.Next(new(table.Item)); err != io.EOF {
		t.Error(err)
	}
}

// Times may be keys and labels, as text.
func TestTimesAsNames(t *testing.T) {
	type row struct {
		Day   int32   `parquet:"day,date"`
		Years []int32 `parquet:"years,list"`
		At    int64   `parquet:"at,timestamp(microsecond)"`
	}
	f := must(memory(write(t, []row{{0, nil, 1}, {0, nil, math.MaxInt64}, {math.MaxInt32, nil, 1}})))(t)
	r := f.items()
	columns := must(r.Columns())(t)
	uses := make([]table.Use, len(columns))
	for i, c := range columns {
		uses[i].Role = map[string]table.Role{"day": table.AsLabels, "at": table.AsKey}[c.Name]
	}
	check(t, r.Map(uses))
	var it table.Item
	if err := r.Next(&it); err != nil || it.Key != "1970-01-01T00:00:00.000001Z" || len(it.Labels) != 1 || it.Labels[0] != "1970-01-01" {
		t.Errorf("%+v, %v", it, err)
	}
	for range 2 {
		if err := r.Next(&it); err == nil || !strings.Contains(err.Error(), "the years 0 to 9999") {
			t.Error(err)
		}
	}
}
