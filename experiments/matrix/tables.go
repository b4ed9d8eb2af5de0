package matrix

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/experiments/common"
)

const (
	auto     = "auto"
	fullscan = "fullscan"
)

// plans are the tiers among which auto chooses.
var plans = []string{"scan", "memory", "disk", "blockscan"}

// tablesCommand prints the results as Markdown tables.
func tablesCommand() *cobra.Command {
	kinds, limit := kindList{both}, 1.05
	var in string
	cmd := common.New("tables", "Print results as tables",
		"The choice of plans is judged by all kinds of queries that were measured.",
		cobra.NoArgs, func(cmd *cobra.Command, _ []string) error {
			list, err := readResults(in)
			if err != nil {
				return err
			}
			if len(list) == 0 {
				return fmt.Errorf("%s has no results", in)
			}
			w := cmd.OutOrStdout()
			list.timeTables(w, kinds)
			list.planTable(w, limit)
			list.crossTable(w)
			list.storeTable(w)
			return nil
		})
	f := common.FlagsOf(cmd)
	f.StringVar(&in, "in", "results.jsonl", "file of results")
	f.Var(&kinds, "kinds", "kinds of queries to show the times of")
	f.Float64Var(&limit, "limit", limit,
		"list where auto takes so many times as long as the best plan, and more")
	return cmd
}

// places returns the measured sets, larger ones last.
func (l results) places() []place {
	rank := func(p place) int { return strings.Index("UCLS", p.set) }
	return distinct(l, (*result).place, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.n, b.n), cmp.Compare(a.bits, b.bits), cmp.Compare(rank(a), rank(b)))
	})
}

func (l results) params(op string) []int {
	return distinct(l.filter(func(r *result) bool { return r.Op == op }), (*result).param, cmp.Compare)
}

// kinds returns the measured kinds of queries.
func (l results) kinds() []string {
	return distinct(l.filter(func(r *result) bool { return r.Op != store }),
		func(r *result) string { return r.Kind }, nil)
}

// timeTables prints one table for each size of a set: the times of searches with the
// plan auto, and how many times as long the full scan takes for the same.
func (l results) timeTables(w io.Writer, kinds []string) {
	type size struct{ n, bits int }
	var sizes []size
	for _, p := range l.places() {
		if s := (size{p.n, p.bits}); !slices.Contains(sizes, s) {
			sizes = append(sizes, s)
		}
	}
	titles := map[string]string{members: "perturbed members", fresh: "fresh queries",
		both: "both kinds of queries"}
	for _, s := range sizes {
		for _, kind := range kinds {
			these := l.filter(func(r *result) bool {
				return r.N == s.n && r.Bits == s.bits &&
					r.Kind == kind
			})
			if len(these) == 0 {
				continue
			}
			fmt.Fprintf(w, "### %s items of %d bits, %s\n\n", term.Thousands(s.n), s.bits, titles[kind])
			fmt.Fprintf(w, "Median in microseconds (how many times as long %s takes).\n\n", fullscan)
			these.timeTable(w, "r", "radius", "hits")
			these.timeTable(w, "k", "knn")
		}
	}
}

// timeTable prints operations whose parameter has one name. All results have one size
// and one kind of queries.
func (l results) timeTable(w io.Writer, param string, ops ...string) {
	params := l.params(ops[0])
	if len(params) == 0 {
		return
	}
	head := []string{"set", "search"}
	for _, x := range params {
		head = append(head, fmt.Sprintf("%s = %s", param, term.Thousands(x)))
	}
	t := newTable(head, 2)
	for _, p := range l.places() {
		for _, op := range ops {
			row := []string{p.set, op}
			for _, x := range params {
				kind := l[0].Kind
				a, yard := l.find(p, kind, op, x, auto), l.find(p, kind, op, x, fullscan)
				if op == "hits" {
					yard = l.find(p, kind, "radius", x, fullscan) // the full scan has no keys, and so no hits
				}
				switch {
				case a == nil:
					row = append(row, "")
				case yard == nil:
					row = append(row, micros(a.P50))
				default:
					row = append(row, fmt.Sprintf("%s (%s)", micros(a.P50), times(yard.P50/a.P50)))
				}
			}
			t.add(row)
		}
	}
	t.write(w)
}

// A choice is a search with auto, beside the fastest plan for it.
type choice struct {
	auto, best *result
}

func (c choice) ratio() float64 { return c.auto.P50 / c.best.P50 }

// choices returns all searches for which auto and the plans were measured, those with
// the largest ratio first.
func (l results) choices() []choice {
	type search struct {
		place
		kind, op string
		param    int
	}
	best := map[search]*result{}
	key := func(r *result) search { return search{r.place(), r.Kind, r.Op, r.param()} }
	for _, r := range l {
		if slices.Contains(plans, r.Tier) {
			if b := best[key(r)]; b == nil || r.P50 < b.P50 {
				best[key(r)] = r
			}
		}
	}
	var all []choice
	for _, r := range l {
		if b := best[key(r)]; b != nil && r.Tier == auto {
			all = append(all, choice{r, b})
		}
	}
	slices.SortStableFunc(all, func(a, b choice) int { return cmp.Compare(b.ratio(), a.ratio()) })
	return all
}

// planTable prints the searches in which auto takes limit times as long as the best
// plan, or longer.
func (l results) planTable(w io.Writer, limit float64) {
	all := l.choices()
	if len(all) == 0 {
		return
	}
	within := func(limit float64) int {
		n := 0
		for _, c := range all {
			if c.ratio() <= limit {
				n++
			}
		}
		return n
	}
	fmt.Fprintf(w, "### Choice of plans\n\n")
	fmt.Fprintf(w, "Of %s searches, auto takes at most 1.05 times as long as the best plan in %s, at most 1.15 times in %s; the worst takes %.2f times.\n\n",
		term.Thousands(len(all)), term.Thousands(within(1.05)), term.Thousands(within(1.15)), all[0].ratio())
	t := newTable([]string{"set", "queries", "search", "bits", "items", "auto", "best", "best plan", "ratio"},
		3)
	for _, c := range all {
		if c.ratio() < limit {
			break
		}
		t.add([]string{c.auto.Set, c.auto.Kind, fmt.Sprintf("%s %d", c.auto.Op, c.auto.param()),
			fmt.Sprint(c.auto.Bits),
			term.Thousands(c.auto.N), micros(c.auto.P50), micros(c.best.P50), c.best.Tier,
			fmt.Sprintf("%.2f", c.ratio())})
	}
	t.write(w)
}

// crossTable prints the parameters from which on a scan is faster than the tables.
func (l results) crossTable(w io.Writer) {
	pairs := [][2]string{{"memory", "scan"}, {"disk", "blockscan"}, {auto, fullscan}}
	head := []string{"set", "queries", "bits", "items"}
	for _, op := range []string{"radius", "knn"} {
		for _, p := range pairs {
			head = append(head, fmt.Sprintf("%s: %s before %s",
				map[string]string{"radius": "r", "knn": "k"}[op], p[1], p[0]))
		}
	}
	t := newTable(head, 2)
	for _, p := range l.places() {
		for _, kind := range l.kinds() {
			row, any := []string{p.set, kind, fmt.Sprint(p.bits), term.Thousands(p.n)}, false
			for _, op := range []string{"radius", "knn"} {
				for _, pair := range pairs {
					text, ok := l.crossing(p, kind, op, pair[0], pair[1])
					row, any = append(row, text), any || ok
				}
			}
			if any {
				t.add(row)
			}
		}
	}
	if len(t.rows) == 0 {
		return
	}
	fmt.Fprintf(w, "### Crossover points\n\nThe smallest radius or k that was measured at which the second is faster than the first.\n\n")
	t.write(w)
}

// crossing returns the smallest parameter at which the tier other is faster than tier.
// ok reports whether both were measured.
func (l results) crossing(p place, kind, op, tier, other string) (text string, ok bool) {
	for _, x := range l.params(op) {
		a, b := l.find(p, kind, op, x, tier), l.find(p, kind, op, x, other)
		if a == nil || b == nil {
			continue
		}
		if b.P50 < a.P50 {
			return term.Thousands(x), true
		}
		ok = true
	}
	if ok {
		return "never", true
	}
	return "", false
}

// storeTable prints what it took to store the sets.
func (l results) storeTable(w io.Writer) {
	stored := l.filter(func(r *result) bool { return r.Op == store })
	if len(stored) == 0 {
		return
	}
	fmt.Fprintf(w, "### Storage\n\n")
	t := newTable([]string{"set", "bits", "items", "distinct codes", "import, s", "items/s", "disk, MB",
		"times the codes", "memory, MB", "bytes a distinct code"}, 1)
	for _, p := range stored.places() {
		for _, r := range stored {
			if r.place() != p {
				continue
			}
			t.add([]string{r.Set, fmt.Sprint(r.Bits), term.Thousands(r.N), term.Thousands(r.DistinctCodes),
				strconv.FormatFloat(r.Seconds, 'g', 3, 64), term.Thousands(int(r.ItemsPerSecond)),
				fmt.Sprintf("%.1f", float64(r.DiskBytes)/1e6),
				fmt.Sprintf("%.1f", float64(r.DiskBytes)/float64(r.N*r.Bits/8)),
				fmt.Sprintf("%.1f", float64(r.MemoryBytes)/1e6),
				fmt.Sprintf("%.0f", float64(r.MemoryBytes)/float64(max(r.DistinctCodes, 1)))})
		}
	}
	t.write(w)
}

// A table in Markdown. Without rows nothing is printed. The first columns, as many as
// text says, hold text, the others numbers.
type table struct {
	head []string
	text int
	rows [][]string
}

func newTable(head []string, text int) *table { return &table{head: head, text: text} }

func (t *table) add(row []string) { t.rows = append(t.rows, row) }

func (t *table) write(w io.Writer) {
	if len(t.rows) == 0 {
		return
	}
	common.Head(w, t.text, t.head...)
	for _, row := range t.rows {
		common.Row(w, row...)
	}
	fmt.Fprintln(w)
}

// micros formats microseconds.
func micros(x float64) string {
	switch {
	case x < 10:
		return strconv.FormatFloat(x, 'f', 1, 64)
	case x < 1e6:
		return term.Thousands(int(x + .5))
	}
	return strconv.FormatFloat(x, 'g', 3, 64)
}

// times formats a ratio.
func times(x float64) string {
	if x < 10 {
		return strconv.FormatFloat(x, 'f', 1, 64) + "x"
	}
	return term.Thousands(int(x+.5)) + "x"
}
