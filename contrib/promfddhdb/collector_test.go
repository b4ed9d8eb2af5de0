package promfddhdb

import (
	"context"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/backup"
	"github.com/fddhdb/fddhdb/db/event"
)

// gathered returns the metrics in a registry by name.
func gathered(t *testing.T, r *prometheus.Registry) map[string]*dto.MetricFamily {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*dto.MetricFamily{}
	for _, f := range families {
		all[f.GetName()] = f
	}
	return all
}

// values returns the values of a metric by their labels, without the label of the
// database.
func values(f *dto.MetricFamily) map[string]float64 {
	all := map[string]float64{}
	for _, m := range f.GetMetric() {
		var labels []string
		for _, l := range m.GetLabel() {
			if l.GetName() != "database" {
				labels = append(labels, l.GetValue())
			}
		}
		all[strings.Join(labels, " ")] = m.GetGauge().GetValue() + m.GetCounter().GetValue() +
			float64(m.GetHistogram().GetSampleCount())
	}
	return all
}

func TestCollector(t *testing.T) {
	ctx := context.Background()
	d, err := db.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(NewCollector(d.Stats, prometheus.Labels{"database": "hashes"}))
	c, err := d.CreateCollection(ctx, "main", db.Schema{Bits: 16})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 7 {
		if _, err := c.Put(ctx, &db.Item{Key: fmt.Sprint(i), Code: []byte{byte(i), 1}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Delete(ctx, "1", "2", "none"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Put(ctx, &db.Item{Code: []byte{1}}); err == nil {
		t.Fatal("a code of a wrong length was stored")
	}
	for range 3 {
		q := db.Query{Code: []byte{0, 1}, K: 2, Plan: db.PlanScan}
		if _, err := c.Search(ctx, q); err != nil {
			t.Fatal(err)
		}
	}
	if r, err := c.SearchRadius(ctx, db.Query{Code: []byte{0, 1}, Plan: db.PlanBlockScan}, 3); err != nil ||
		r.Close() != nil {
		t.Fatal(err)
	}
	store, err := backup.Folder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	m, err := d.Backup(ctx, store, db.BackupOptions{})
	if err != nil {
		t.Fatal(err)
	}
	all := gathered(t, r)
	for name, want := range map[string]map[string]float64{
		"fddhdb_up":                        {"": 1},
		"fddhdb_failed":                    {"": 0},
		"fddhdb_collection_items":          {"main": 5},
		"fddhdb_collection_distinct_codes": {"main": 5},
		"fddhdb_items_put_total":           {"": 7},
		"fddhdb_items_deleted_total":       {"": 2},
		"fddhdb_write_seconds":             {"": 8},
		"fddhdb_write_errors_total":        {"": 0}, // the write failed before its commit
		"fddhdb_commits":                   {"": 9},
		"fddhdb_search_seconds":            {"search scan": 3, "search_radius blockscan": 1},
		"fddhdb_search_hits_total":         {"": 6},
		"fddhdb_last_backup_bytes":         {"": float64(m.BytesTotal)},
	} {
		if got := values(all[name]); !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	if got := values(all["fddhdb_operations_done_total"]); got["backup"] != 1 {
		t.Errorf("operations %v", got)
	}
	// A first failure shows as a rise from 0, not as a new counter.
	if got := values(all["fddhdb_operations_failed_total"]); len(got) != len(operations) ||
		got["train"] != 0 {
		t.Errorf("operations that failed %v", got)
	}
	h := all["fddhdb_sync_seconds"].GetMetric()[0].GetHistogram()
	last := h.GetBucket()[len(h.GetBucket())-1]
	if h.GetSampleCount() != 9 || h.GetSampleSum() <= 0 || last.GetCumulativeCount() != 9 {
		t.Errorf("syncs %v", h)
	}
	problems, err := testutil.GatherAndLint(r)
	if err != nil || len(problems) > 0 {
		t.Errorf("what promtool would find: %v, %v", problems, err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if all := gathered(t, r); len(all) != 1 || values(all["fddhdb_up"])[""] != 0 {
		t.Errorf("closed: %v", all)
	}
}

// Two databases can share a registry.
func TestTwoDatabases(t *testing.T) {
	r := prometheus.NewPedanticRegistry()
	for _, name := range []string{"one", "two"} {
		d, err := db.Open(t.TempDir(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		if err := r.Register(NewCollector(d.Stats, prometheus.Labels{"database": name})); err != nil {
			t.Fatal(err)
		}
	}
	if up := gathered(t, r)["fddhdb_up"]; len(up.GetMetric()) != 2 {
		t.Errorf("%v", up)
	}
}

// There is a metric for each operation of a database. A restore does not count: it
// happens without an open database.
func TestAllOperations(t *testing.T) {
	source, err := os.ReadFile("../../db/event/event.go")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{}
	long, _, _ := strings.Cut(string(source), "// Calls that are short")
	for _, m := range regexp.MustCompile(`Op = "([a-z_]+)"`).FindAllStringSubmatch(long, -1) {
		if m[1] != string(event.OpRestore) {
			want = append(want, m[1])
		}
	}
	var got []string
	for _, op := range operations {
		got = append(got, string(op))
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// The table of docs/OPERATIONS.md has all metrics, no others, and their types and
// labels.
func TestMetricsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/OPERATIONS.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| `(fddhdb_[a-z_]+)`(?:\\{([a-z, ]+)\\})? \\| (\\w+) \\| ([^|]+) \\|$")
	var documented []string
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		documented = append(documented, m[1]+"{"+strings.ReplaceAll(m[2], " ", "")+"} "+m[3])
	}
	var want []string
	for _, m := range metrics {
		want = append(want, m.name+"{"+strings.Join(m.labels, ",")+"} "+string(m.kind))
	}
	slices.Sort(documented)
	slices.Sort(want)
	for _, m := range want {
		if !slices.Contains(documented, m) {
			t.Errorf("not in docs/OPERATIONS.md: %s", m)
		}
	}
	for _, m := range documented {
		if !slices.Contains(want, m) {
			t.Errorf("only in docs/OPERATIONS.md: %s", m)
		}
	}
}
