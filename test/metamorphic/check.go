package metamorphic

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/internal/oracle"
	"github.com/fddhdb/fddhdb/test/metamorphic/program"
)

// check compares everything that can be read with the model.
func (h *history) check(*program.Op) error {
	got := map[string]string{}
	for m, err := range h.d.Marks(h.ctx, "") {
		if err != nil {
			return err
		}
		got[m.Name] = string(m.Value)
	}
	if !maps.Equal(got, h.now.marks) {
		return fmt.Errorf("marks %v, want %v", got, h.now.marks)
	}
	return h.checkWorld(h.now, h.d.Collection)
}

// checkWorld compares a state of the database with a world. get returns its
// collections.
func (h *history) checkWorld(w *world, get func(string) (*db.Collection, error)) error {
	for _, name := range []string{"a", "b", "c", "d"} {
		c := w.collections[name]
		handle, err := get(name)
		if c == nil {
			if !errors.Is(err, db.ErrNotFound) {
				return fmt.Errorf("collection %q was not created, or dropped: %v", name, err)
			}
			continue
		}
		if err == nil {
			err = h.checkCollection(c, handle)
		}
		if err != nil {
			return fmt.Errorf("collection %q: %w", name, err)
		}
	}
	return nil
}

// checkKeys goes through the keys of a collection in their order, and those of the items
// with the first key's first character.
func (h *history) checkKeys(c *collection, handle *db.Collection) error {
	want := slices.Sorted(maps.Keys(c.items))
	var got []string
	for key, err := range handle.Keys(h.ctx, "") {
		if err != nil {
			return err
		}
		got = append(got, key)
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("keys %q, want %q", got, want)
	}
	return nil
}

func (h *history) checkCollection(c *collection, handle *db.Collection) error {
	if n, err := handle.Count(context.Background(), ""); err != nil || n != len(c.items) {
		return wrong(err, "%d items counted, want %d", n, len(c.items))
	}
	s, err := handle.Schema()
	if err != nil || s.IndexOnly != c.indexOnly || s.Bits != c.schema.Bits ||
		!slices.Equal(s.Modalities, c.schema.Modalities) || !slices.Equal(s.Fields, c.schema.AllFields()) {
		return wrong(err, "schema %+v; want %+v, index-only: %v", s, c.schema, c.indexOnly)
	}
	labels, err := handle.Labels()
	if err != nil {
		return err
	}
	if c.fresh {
		if err := h.lookUp(c, handle, labels); err != nil {
			return err
		}
	}
	want := c.used()
	if c.unordered {
		slices.Sort(labels)
		slices.Sort(want)
	}
	if !slices.Equal(labels, want) {
		return fmt.Errorf("labels %q, want %q", labels, want)
	}
	if err := h.checkKeys(c, handle); err != nil {
		return err
	}
	if err := c.checkIndexes(handle); err != nil {
		return err
	}
	infos, err := handle.Spaces(h.ctx)
	if err != nil {
		return err
	}
	if len(infos) != len(c.spaces) {
		return fmt.Errorf("%d spaces, want %d", len(infos), len(c.spaces))
	}
	if c.active == 0 {
		return h.checkItems(c, nil, handle)
	}
	for i, sp := range c.spaces {
		in, err := handle.InSpace(sp.number, 0)
		if err != nil {
			return err
		}
		if err := h.checkItems(c, sp, in); err != nil {
			return err
		}
		if err := h.checkSpace(c, sp, &infos[i]); err != nil {
			return fmt.Errorf("space %d: %w", sp.number, err)
		}
		if err := h.checkCodes(c, sp, in); err != nil {
			return fmt.Errorf("space %d: %w", sp.number, err)
		}
	}
	return h.checkStats(c, handle)
}

// lookUp reads the order in which several goroutines have written, and takes it over.
func (h *history) lookUp(c *collection, handle *db.Collection, labels []string) error {
	used := c.used()
	if !slices.Equal(slices.Sorted(slices.Values(labels)), slices.Sorted(slices.Values(used))) {
		return fmt.Errorf("labels %q, want %q in some order", labels, used)
	}
	if len(used) == len(c.labels) {
		c.labels, c.unordered = labels, false
	} else {
		c.unordered = true
	}
	var order []string
	for it, err := range handle.Items(h.ctx, "") {
		if err != nil {
			return err
		}
		order = append(order, it.Key)
	}
	if !slices.Equal(slices.Sorted(slices.Values(order)), slices.Sorted(maps.Keys(c.items))) {
		return fmt.Errorf("items %q, want %q in some order", order, slices.Sorted(maps.Keys(c.items)))
	}
	c.order, c.fresh = order, false
	return nil
}

// checkItems compares all items as a space shows them.
func (h *history) checkItems(c *collection, sp *space, in *db.Collection) error {
	at := 0
	for it, err := range in.Items(h.ctx, "") {
		if err != nil {
			return err
		}
		if at == len(c.order) || it.Key != c.order[at] {
			return fmt.Errorf("item %d is %q, want %q", at, it.Key, c.order[min(at, len(c.order)-1)])
		}
		if err := c.same(sp, it.Key, it); err != nil {
			return err
		}
		at++
	}
	if at != len(c.order) {
		return fmt.Errorf("%d items, want %d", at, len(c.order))
	}
	return nil
}

// checkSpace compares the description of a space.
func (h *history) checkSpace(c *collection, sp *space, info *report.SpaceInfo) error {
	state := report.SpaceStandby
	if sp.number == c.active {
		state = report.SpaceActive
	}
	if (h.learns() || sp.free) && info.Revision >= sp.revision {
		sp.revision, sp.free = info.Revision, false
	}
	if info.Space != sp.number || info.State != state || info.Previous != (sp.number == c.previous) ||
		info.Bits != sp.bits ||
		info.Revision != sp.revision && !c.codesOnly() {
		return fmt.Errorf("%d, %s, previous %v, %d bits, revision %d; want %d, %s, %v, %d, %d", info.Space,
			info.State, info.Previous,
			info.Bits, info.Revision, sp.number, state, sp.number == c.previous, sp.bits, sp.revision)
	}
	if info.Items != sp.coded() || info.Codes != sp.distinct() || info.Recode != 0 {
		return fmt.Errorf("%d items have a code, %d are distinct, %d are to be made again; want %d, %d and 0",
			info.Items, info.Codes, info.Recode,
			sp.coded(), sp.distinct())
	}
	if c.codesOnly() {
		return nil
	}
	kept := map[uint32]bool{}
	for _, r := range info.Revisions {
		kept[r.Revision] = true
	}
	for r := sp.revision; r > 0 && r+8 > sp.revision; r-- {
		if !kept[r] {
			return fmt.Errorf("revision %d of %d is not kept", r, sp.revision)
		}
	}
	if !kept[1] {
		return errors.New("revision 1 is not kept")
	}
	return nil
}

// checkCodes compares the listed codes, and the rows of their items.
func (h *history) checkCodes(c *collection, sp *space, in *db.Collection) error {
	at, last := 0, uint32(0)
	var want []string
	for _, key := range c.order {
		if _, ok := sp.code(key); ok {
			want = append(want, key)
		}
	}
	for got, err := range in.Codes(h.ctx, "") {
		if err != nil {
			return err
		}
		if at == len(want) || got.Key != want[at] {
			return fmt.Errorf("code %d is that of %q", at, got.Key)
		}
		it := c.items[got.Key]
		if code, _ := sp.code(got.Key); string(got.Code) != code {
			return fmt.Errorf("item %q is listed with code %x, want %x", got.Key, got.Code, code)
		}
		if c.loose && at > 0 && got.Row <= last || !c.loose && it.row != got.Row {
			return fmt.Errorf("item %q is in row %d after row %d, want %d", got.Key, got.Row, last, it.row)
		}
		last = got.Row
		at++
	}
	if at != len(want) {
		return fmt.Errorf("%d codes, want %d", at, len(want))
	}
	return nil
}

// checkStats compares the statistics of a collection.
func (h *history) checkStats(c *collection, handle *db.Collection) error {
	s, err := handle.Stats(h.ctx)
	if err != nil {
		return err
	}
	sp := c.space(0)
	if s.Items != len(c.items) || s.Labels != len(c.used()) || s.Spaces != len(c.spaces) ||
		s.Space != sp.number || s.Bits != sp.bits ||
		s.CodedItems != sp.coded() || s.DistinctCodes != sp.distinct() {
		return fmt.Errorf("figures %+v; want %d items, %d labels, %d spaces, space %d, %d bits, %d coded, %d distinct",
			s, len(c.items), len(c.used()), len(c.spaces), sp.number, sp.bits, sp.coded(), sp.distinct())
	}
	for _, m := range s.Modalities {
		n := 0
		for _, it := range c.items {
			if it.vectors[m.Name] != nil {
				n++
			}
		}
		if m.Items != n {
			return fmt.Errorf("%d items have %q, want %d", m.Items, m.Name, n)
		}
	}
	return nil
}

// probe asks every collection some queries. Each asks for all items.
func (h *history) probe() (map[string][]db.Hit, error) {
	out := map[string][]db.Hit{}
	for _, name := range names(h.now) {
		handle, err := h.d.Collection(name)
		if err != nil {
			return nil, err
		}
		c := h.now.collections[name]
		for _, sp := range c.spaces {
			handle, err := handle.InSpace(sp.number, 0)
			if err != nil {
				return nil, err
			}
			queries := map[string]db.Query{"by code": {Code: program.CodeOf(sp.bits, 259)}}
			for _, m := range sp.modalities {
				queries["by "+m] = db.Query{From: m, Vector: program.VectorOf(c.modality(m), 3)}
			}
			for what, q := range queries {
				q.K = len(c.items) + 1
				q.Rerank = db.RerankProjection // what it compares copies without vectors have, too
				res, err := handle.Search(h.ctx, q)
				if errors.Is(err, db.ErrInvalid) {
					continue // the vector is far from all anchors
				}
				if err != nil {
					return nil, err
				}
				out[fmt.Sprintf("%s in space %d, revision %d, of collection %s", what, res.Space,
					res.Revision, name)] = res.Hits
			}
		}
	}
	return out, nil
}

// sameAnswers compares the answers of probe at two times. It leaves out revisions that
// are missing at one of them.
func sameAnswers(before, after map[string][]db.Hit) error {
	for what, hits := range before {
		if again, ok := after[what]; ok && !oracle.SameHits(hits, again) {
			return fmt.Errorf("query %s: %v, then %v", what, hits, again)
		}
	}
	return nil
}

// firstOfSpace returns the name of the first modality of the space of one. The schema is settled.
func firstOfSpace(m db.Modality) string { return cmp.Or(m.SpaceOf, m.Name) }

// settled returns modalities as the database has them, with what a schema changes; or ErrInvalid if
// there can be none such. The first of them, so many as stored says, are so already.
//
// Modalities are the nodes of a graph, and share a space if they are connected.
func settled(all []db.Modality, stored int, change *program.Schema) ([]db.Modality, error) {
	all = slices.Clone(all)
	at := func(name string) int {
		return slices.IndexFunc(all, func(m db.Modality) bool { return m.Name == name })
	}
	edges := map[[2]int]bool{}
	connect := func(a, b int) bool {
		edges[[2]int{a, b}], edges[[2]int{b, a}] = true, true
		return a >= 0 && b >= 0 && a != b
	}
	possible := true
	for i, m := range all {
		if i >= stored && m.SpaceOf != "" {
			possible = connect(i, at(m.SpaceOf)) && possible
		}
		for j, o := range all[:min(i, stored)] {
			of, leaves := change.SpaceOf[m.Name]
			ofOther, leavesToo := change.SpaceOf[o.Name]
			if i < stored && firstOfSpace(m) == firstOfSpace(o) && !(leaves && of == "") &&
				!(leavesToo && ofOther == "") {
				connect(i, j)
			}
		}
	}
	for name, of := range change.SpaceOf {
		if of != "" {
			possible = connect(at(name), at(of)) && possible
		} else {
			possible = possible && at(name) >= 0
		}
	}
	for name, m := range change.Metrics {
		possible = possible && at(name) >= 0 && knownMetric(m)
	}
	if !possible || slices.ContainsFunc(all, func(m db.Modality) bool { return !knownMetric(m.Metric) }) {
		return nil, db.ErrInvalid
	}
	seen := map[int]bool{}
	for first := range all {
		if seen[first] {
			continue
		}
		members := []int{first}
		seen[first] = true
		for i := 0; i < len(members); i++ { // it grows
			for j := range all {
				if edges[[2]int{members[i], j}] && !seen[j] {
					seen[j] = true
					members = append(members, j)
				}
			}
		}
		given, own := map[db.Metric]bool{}, map[db.Metric]bool{}
		for _, i := range members {
			m := all[i]
			if m.Dim != all[first].Dim || m.Sparse != all[first].Sparse {
				return nil, db.ErrInvalid
			}
			if metric, is := change.Metrics[m.Name]; is {
				given[cmp.Or(metric, db.Cosine)] = true
			}
			switch {
			case i < stored:
				own[cmp.Or(m.Metric, db.Cosine)] = true
			case m.Metric != "":
				own[m.Metric] = true
			}
		}
		if len(given) > 0 {
			for _, i := range members {
				if i >= stored && all[i].Metric != "" {
					given[all[i].Metric] = true
				}
			}
			own = given
		}
		if len(own) > 1 {
			return nil, db.ErrInvalid
		}
		for _, i := range members {
			all[i].Metric, all[i].SpaceOf = "", ""
			for metric := range maps.Keys(own) {
				if metric != db.Cosine {
					all[i].Metric = metric
				}
			}
			if i != first {
				all[i].SpaceOf = all[first].Name
			}
		}
	}
	return all, nil
}

func knownMetric(m db.Metric) bool {
	return slices.Contains([]db.Metric{"", db.Cosine, db.Dot, db.L2}, m)
}

// comparedWith returns the names of the modalities whose vectors a query is compared with.
func comparedWith(s *program.Schema, from, to string) (names []string) {
	of := ""
	for _, m := range s.Modalities {
		if m.Name == from {
			of = firstOfSpace(m)
		}
	}
	for _, m := range s.Modalities {
		switch {
		case m.Name == to && firstOfSpace(m) == of:
			return []string{to}
		case firstOfSpace(m) == of:
			names = append(names, m.Name)
		}
	}
	if to != "" {
		return []string{from}
	}
	return names
}

// similar returns where the metric puts a vector in the order of an answer, the highest first, and
// its similarity with x.
func similar(metric db.Metric, x, y []float32) (place, similarity float32) {
	var xy, apart float64
	for j := range x {
		a, b := float64(x[j]), float64(y[j])
		xy, apart = xy+a*b, apart+(a-b)*(a-b)
	}
	switch metric {
	case db.Dot:
		return float32(xy), float32(xy)
	case db.L2:
		d := float32(min(apart, math.MaxFloat32))
		return -d, float32(1 / (1 + float64(d)))
	}
	c := cosine(x, y)
	return c, c
}
