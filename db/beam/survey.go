package beam

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/RoaringBitmap/roaring/v2"
	sdk "github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/source"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/model"
)

// A Rejected is a bad row that was left out, or files that cannot be read, whose rows were all left out.
type Rejected struct {
	Files  string `json:"files"` // the files of the row
	Row    int    `json:"row"`   // from 0; -1 for all
	Reason string `json:"reason"`
}

// A groupSurvey has the results of a survey of the files of a group.
type groupSurvey struct {
	Rows     int        `json:"rows"`
	Good     *rowSet    `json:"good"`     // rows that are items
	Labelled *rowSet    `json:"labelled"` // rows with labels
	Has      []*rowSet  `json:"has"`      // by modality of the schema: rows with a vector
	Labels   []string   `json:"labels"`   // in the order in which an import would give them ids
	Rejected []Rejected `json:"rejected,omitempty"`
	// why the group cannot be read: an error of a row, or of a file
	Err string `json:"err,omitempty"`
}

// A rowSet is a set of rows, in JSON in the portable form of roaring bitmaps.
type rowSet struct{ *roaring.Bitmap }

func newRowSet() *rowSet { return &rowSet{roaring.New()} }

func (s *rowSet) MarshalJSON() ([]byte, error) {
	s.RunOptimize()
	b, err := s.ToBytes()
	if err != nil {
		return nil, err
	}
	return json.Marshal(b)
}

func (s *rowSet) UnmarshalJSON(b []byte) error {
	var raw []byte
	if err := json.Unmarshal(b, &raw); err != nil {
		return err
	}
	s.Bitmap = roaring.New()
	return s.UnmarshalBinary(raw)
}

// SurveyFn surveys groups. It emits nothing; it writes a file of results for each.
type SurveyFn struct {
	Plan string // path
	Dir  string // of the surveys

	rows, bad, groups sdk.Counter
}

func init() { register.DoFn3x1[context.Context, []byte, func(string), error](&SurveyFn{}) }

// Setup implements a DoFn.
func (f *SurveyFn) Setup() {
	f.rows, f.bad = sdk.NewCounter(namespace, "rows surveyed"), sdk.NewCounter(namespace, "rows rejected")
	f.groups = sdk.NewCounter(namespace, "file groups left out")
}

// ProcessElement surveys a group.
func (f *SurveyFn) ProcessElement(ctx context.Context, task []byte, emit func(string)) error {
	done, err := working(ctx, f.Dir)
	if err != nil {
		return err
	}
	defer done()
	var number int
	if err := json.Unmarshal(task, &number); err != nil {
		return err
	}
	path := surveyPath(f.Dir, number)
	if exists(ctx, path) {
		return nil
	}
	w, err := workerOf(ctx, f.Plan)
	if err != nil {
		return err
	}
	s, err := w.survey(ctx, number)
	if err != nil {
		return err
	}
	f.rows.Inc(ctx, int64(s.Rows))
	rows, groups := leftOut(s.Rejected)
	f.bad.Inc(ctx, rows)
	f.groups.Inc(ctx, groups)
	b, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := write(ctx, path, b); err != nil {
		return err
	}
	emit(path)
	return nil
}

// leftOut counts single rows and whole groups of files. The number of rows of an unreadable group is unknown.
func leftOut(all []Rejected) (rows, groups int64) {
	for _, bad := range all {
		if bad.Row < 0 {
			groups++
		} else {
			rows++
		}
	}
	return rows, groups
}

func surveyPath(dir string, group int) string {
	return join(dir, fmt.Sprintf("survey-%06d.json", group))
}

// survey reads a group. Errors in its files are part of the survey, because another try would not help.
func (w *worker) survey(ctx context.Context, number int) (*groupSurvey, error) {
	s := &groupSurvey{Good: newRowSet(), Labelled: newRowSet()}
	for range w.plan.Schema.Modalities {
		s.Has = append(s.Has, newRowSet())
	}
	known := map[string]bool{}
	register := func(labels []string) {
		for _, l := range labels {
			if !known[l] {
				known[l] = true
				s.Labels = append(s.Labels, l)
			}
		}
	}
	err := w.rows(ctx, number, 0, register, func(row int, item *db.Item, bad error) error {
		s.Rows = row + 1
		if bad == nil {
			bad = w.checkRow(ctx, number, row, item)
		}
		if bad != nil {
			why := reason(bad)
			if !w.plan.Skip {
				return inputError("%s", why)
			}
			s.Rejected = append(s.Rejected, Rejected{w.plan.Groups[number].name(), row, why})
			return nil
		}
		s.Good.Add(uint32(row))
		if len(item.Labels) > 0 {
			s.Labelled.Add(uint32(row))
			register(item.Labels)
		}
		for t, m := range w.plan.Schema.Modalities {
			if vectorOf(item, m.Name).Present() {
				s.Has[t].Add(uint32(row))
			}
		}
		return nil
	})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	switch {
	case err == nil:
	case ofInput(err) && w.plan.Skip: // of a file: rows read from it are left out, too
		empty := &groupSurvey{Good: newRowSet(), Labelled: newRowSet(),
			Rejected: []Rejected{{w.plan.Groups[number].name(), -1, reason(err)}}}
		for range w.plan.Schema.Modalities {
			empty.Has = append(empty.Has, newRowSet())
		}
		return empty, nil
	case ofInput(err):
		s.Err = reason(err)
	default:
		return nil, err
	}
	return s, nil
}

// ofInput reports whether an error is about the contents of a file, so that another try would give it again.
func ofInput(err error) bool {
	var bad *InputError
	return errors.As(err, &bad) || source.IsOfInput(err)
}

// vectorOf returns the vector of an item in a modality.
func vectorOf(item *db.Item, modality string) model.Vector {
	if x, ok := item.Vectors[modality]; ok {
		return model.Dense(x)
	}
	if x, ok := item.Sparse[modality]; ok {
		return model.Sparse(x.Index, x.Value)
	}
	return model.Vector{}
}

// A survey has the driver's facts about the items.
type survey struct {
	plan   *plan
	id     string // of the plan: of files, their sizes and the options
	path   string // of the plan
	dir    string // folder of the files made from the plan
	groups []*groupSurvey
	labels []string // of all items, in the order of their ids in an empty collection that imports the files
}

// survey lets workers survey the input.
func (r *Run) survey(ctx context.Context, in *Input) (*survey, error) {
	if err := r.begin(); err != nil {
		return nil, err
	}
	p, err := in.plan(ctx)
	if err != nil {
		return nil, err
	}
	if r.Noted != nil && p.note != "" {
		r.Noted(p.note)
	}
	b, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	s := &survey{plan: p, id: hash(b)}
	s.dir = join(r.Temp, "input-"+s.id[:16])
	s.path = join(s.dir, "plan.json")
	if err := write(ctx, s.path, b); err != nil {
		return nil, err
	}
	var tasks [][]byte
	var paths []string
	for i := range p.Groups {
		tasks, paths = append(tasks, fmt.Append(nil, i)), append(paths, surveyPath(s.dir, i))
	}
	err = r.pipeline(ctx, "survey", s.dir, paths, func(scope sdk.Scope) {
		drain(scope, sdk.ParDo(scope, &SurveyFn{Plan: s.path, Dir: s.dir}, each(scope, tasks)))
	})
	if err != nil {
		return nil, err
	}
	var bad error // of the first group that has one
	for _, path := range paths {
		g := &groupSurvey{}
		if err := readJSON(ctx, path, g); err != nil {
			return nil, err
		}
		s.groups = append(s.groups, g)
		if g.Err == "" {
			continue
		}
		// The files may have changed at the next try.
		if err := remove(ctx, path); err != nil {
			return nil, err
		}
		if bad == nil {
			bad = inputError("%s", g.Err)
		}
	}
	if bad != nil {
		return nil, bad
	}
	known := map[string]bool{}
	for _, g := range s.groups {
		for _, l := range g.Labels {
			if !known[l] {
				known[l] = true
				s.labels = append(s.labels, l)
			}
		}
	}
	return s, nil
}

// rejected returns the bad rows that were left out.
func (s *survey) rejected() (all []Rejected) {
	for _, g := range s.groups {
		all = append(all, g.Rejected...)
	}
	return all
}

// items are rows of the groups, in order: a selection of items. They are numbered from 0.
type items struct {
	survey *survey
	rows   []*roaring.Bitmap // by group
	first  []int             // by group: the number of its first item; at the end the number of all
	of     string            // names the set
}

// items returns the items that rows selects from each group. of names the set.
func (s *survey) items(of string, rows func(*groupSurvey) *roaring.Bitmap) *items {
	it := &items{survey: s, of: of}
	for _, g := range s.groups {
		it.rows = append(it.rows, rows(g))
	}
	it.count()
	return it
}

// good returns all items.
func (s *survey) good() *items {
	return s.items("all", func(g *groupSurvey) *roaring.Bitmap { return g.Good.Bitmap })
}

// labelled returns the items with labels.
func (s *survey) labelled() *items {
	return s.items("labelled", func(g *groupSurvey) *roaring.Bitmap { return g.Labelled.Bitmap })
}

// vectors returns the items with a vector.
func (s *survey) vectors() *items {
	return s.items("vectors", func(g *groupSurvey) *roaring.Bitmap {
		any := roaring.New()
		for _, has := range g.Has {
			any.Or(has.Bitmap)
		}
		return any
	})
}

func (it *items) count() {
	it.first = []int{0}
	for _, rows := range it.rows {
		it.first = append(it.first, it.n()+int(rows.GetCardinality()))
	}
}

// n returns the number of items.
func (it *items) n() int { return it.first[len(it.first)-1] }

// limit keeps the first n items.
func (it *items) limit(n int) {
	if n <= 0 || n >= it.n() {
		return
	}
	it.of = fmt.Sprintf("%s-%d", it.of, n)
	for g, rows := range it.rows {
		left := max(0, n-it.first[g])
		if uint64(left) >= rows.GetCardinality() {
			continue
		}
		first := roaring.New()
		if left > 0 {
			last, _ := rows.Select(uint32(left - 1))
			first.AddRange(0, uint64(last)+1)
			first.And(rows)
		}
		it.rows[g] = first
	}
	it.count()
}

// has yields the items with a vector of a modality of the schema.
func (it *items) has(t int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for g, rows := range it.rows {
			has := it.survey.groups[g].Has[t].Bitmap
			all := rows.AndCardinality(has) == rows.GetCardinality()
			n := it.first[g]
			for row := range roaring.Values(rows) {
				if (all || has.Contains(row)) && !yield(n) {
					return
				}
				n++
			}
		}
	}
}

// any reports whether an item has a vector of modality t.
func (it *items) any(t int) bool {
	for g, rows := range it.rows {
		if rows.Intersects(it.survey.groups[g].Has[t].Bitmap) {
			return true
		}
	}
	return false
}

// A task is a run of items.
type task struct {
	Index    int       `json:"index"`
	First    int       `json:"first"` // the number of its first item
	Segments []segment `json:"segments"`
}

// A segment is the part of a task in one group.
type segment struct {
	Group int     `json:"group"`
	Rows  *rowSet `json:"rows"`
}

// tasks divides the items into tasks of size items.
func (it *items) tasks(size int) (tasks []task, encoded [][]byte, err error) {
	g := 0
	for first := 0; first < it.n(); first += size {
		t := task{Index: len(tasks), First: first}
		for at, end := first, min(first+size, it.n()); at < end; {
			for at >= it.first[g+1] {
				g++
			}
			to := min(end, it.first[g+1])
			from, _ := it.rows[g].Select(uint32(at - it.first[g]))
			last, _ := it.rows[g].Select(uint32(to - 1 - it.first[g]))
			rows := roaring.New()
			rows.AddRange(uint64(from), uint64(last)+1)
			rows.And(it.rows[g])
			t.Segments = append(t.Segments, segment{g, &rowSet{rows}})
			at = to
		}
		b, err := json.Marshal(t)
		if err != nil {
			return nil, nil, err
		}
		tasks, encoded = append(tasks, t), append(encoded, b)
	}
	return tasks, encoded, nil
}

// each calls f with the items of a task, and their rows. It ends with the first error of f, and returns that.
func (w *worker) each(ctx context.Context, t *task, f func(group, row int, item *db.Item) error) error {
	var ended error // the error of f
	for _, s := range t.Segments {
		if s.Rows.IsEmpty() {
			continue
		}
		last, left := s.Rows.Maximum(), s.Rows.GetCardinality()
		err := w.rows(ctx, s.Group, int(s.Rows.Minimum()), nil,
			func(row int, item *db.Item, bad error) error {
				if s.Rows.Contains(uint32(row)) {
					if bad != nil {
						return badInput("%s; it was good before: the file has changed", reason(bad))
					}
					left--
					if ended = f(s.Group, row, item); ended != nil {
						return errEnough
					}
				}
				if uint32(row) == last {
					return errEnough
				}
				return nil
			})
		switch {
		case ended != nil:
			return ended
		case err != nil:
			return err
		case left > 0:
			return badInput("%s has %d rows less than it had before: the file has changed",
				w.plan.Groups[s.Group].name(), left)
		}
	}
	return nil
}
