package search

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/internal/instant"
)

// A most keeps the first of the counts added, in the order of compareCounts.
type most struct {
	limit  int          // how many; 0: all
	counts []FacetCount // with the first counts so far
	last   *FacetCount  // the limit-th count at the last cut; nil: never cut
}

// compareCounts orders the most items first, then the least value.
func compareCounts(a, b FacetCount) int {
	return cmp.Or(cmp.Compare(b.Items, a.Items), compareValues(a.Value, b.Value))
}

// add adds a count. It makes the value only if the count may stay.
func (m *most) add(items int, value func() any) {
	if m.last != nil && items < m.last.Items {
		return
	}
	n := FacetCount{value(), items}
	if m.last != nil && compareCounts(n, *m.last) > 0 {
		return
	}
	m.counts = append(m.counts, n)
	if m.limit > 0 && len(m.counts)-m.limit >= m.limit {
		m.cut()
	}
}

func (m *most) cut() {
	slices.SortFunc(m.counts, compareCounts)
	if m.limit > 0 && len(m.counts) >= m.limit {
		m.counts = m.counts[:m.limit]
		last := m.counts[m.limit-1]
		m.last = &last
	}
}

// all returns the first counts, in order.
func (m *most) all() []FacetCount {
	m.cut()
	return m.counts
}

// compareValues orders two values of one type.
func compareValues(a, b any) int {
	switch a := a.(type) {
	case string:
		return strings.Compare(a, b.(string))
	case int64:
		return cmp.Compare(a, b.(int64))
	case float64:
		return cmp.Compare(a, b.(float64))
	case time.Time:
		return a.Compare(b.(time.Time))
	}
	return cmp.Compare(codec.BoolImage(a.(bool)), codec.BoolImage(b.(bool)))
}

// Value returns a stored value of a field in its public form: a codec.Time becomes a time.Time, in UTC.
func Value(stored any) any {
	if t, is := stored.(codec.Time); is {
		return instant.Time(int64(t))
	}
	return stored
}

// textCounts counts by texts. It copies a text only when it first sees it.
type textCounts struct {
	at     map[string]int // positions in counts
	counts []int
}

func (t *textCounts) add(text []byte, n int) {
	at, there := t.at[string(text)]
	if !there {
		at = len(t.counts)
		t.at[string(text)], t.counts = at, append(t.counts, 0)
	}
	t.counts[at] += n
}
