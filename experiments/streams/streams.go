// Package streams measures projections that go on learning (eqs. 22-24 of the paper; model.Online):
//
//	experiments online SET [--first .1] [--parts 9]
//	experiments classes SET [--first .5]
//
// online trains on the first items of a set, drawn with the seed, and streams the others in parts. After each
// part the queries search all items that have come: labelled ones have the codes of their labels, the others
// those of their projections. Ways to go on:
//
//   - labels: every item of the stream teaches those of its labels that the first items have;
//   - self: items come without labels, and each modality teaches itself, as in the paper;
//   - by NAME: likewise, and the projection of NAME teaches all modalities;
//   - none: nothing is learned;
//   - again: a new training on all items that have come, with their labels.
//
// classes trains on the items of some labels, and then adds the other labels one by one, with all items whose
// labels are known by then: grown by Online.Grow and the items' labels, and again, by a new training on all
// of them. Queries are those whose labels are known.
package streams

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/experiments/common"
	"github.com/fddhdb/fddhdb/experiments/sets"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/eval"
	"github.com/fddhdb/fddhdb/model/fit"
)

// A config has the values of the flags.
type config struct {
	first    float64 // share of the items, or of the labels, of the first training
	parts    int
	bits     int
	seeds    int
	defaults bool
}

// Commands returns both experiments.
func Commands() []*cobra.Command {
	online := &config{first: .1, parts: 9}
	classes := &config{first: .5}
	cmds := []*cobra.Command{
		online.command("online SET", "Measure projections that learn from a stream of items", online.online),
		classes.command("classes SET", "Measure projections that learn one new label after the other",
			classes.classes),
	}
	common.FlagsOf(cmds[0]).Count(&online.parts, "parts", "parts of the stream")
	return cmds
}

func (c *config) command(use, short string,
	run func(ctx context.Context, l *lab, stdout io.Writer) error) *cobra.Command {
	c.bits, c.seeds = 64, 3
	cmd := common.New(use, short, `A SET is a folder of files as makeset writes it, or a published .mat file, with queries. A row is the mean over --seeds runs, and
+- the standard deviation. Settings are those of the authors, or with --defaults those of fddhdb train.`,
		cobra.ExactArgs(1), func(cmd *cobra.Command, args []string) error {
			if !(c.first > 0 && c.first < 1) {
				return fmt.Errorf("--first %v: a number between 0 and 1 is expected", c.first)
			}
			s, err := sets.Read(args[0])
			if err != nil {
				return err
			}
			if s.Queries == nil {
				return fmt.Errorf("%s has no queries: files query_NAME.npy and query_labels.npy are expected",
					args[0])
			}
			return run(cmd.Context(), &lab{config: c, set: s}, cmd.OutOrStdout())
		})
	f := common.FlagsOf(cmd)
	f.Float64Var(&c.first, "first", c.first, "share of the items (classes: of the labels) of the first training")
	f.Bits(&c.bits)
	f.Seeds(&c.seeds)
	f.BoolVar(&c.defaults, "defaults", false, "train with the defaults of fddhdb train")
	return cmd
}

// A lab measures on a set with one seed at a time.
type lab struct {
	*config
	set     *sets.Set
	seed    uint64
	items   sets.Examples // in the order of the seed
	queries sets.Examples
	rows    []*row // as they first came
}

// A row is a line of the table, over all seeds.
type row struct {
	way     string
	at      int         // items (online) or labels (classes)
	items   []float64   // by seed, as all below
	maps    [][]float64 // of each direction
	seconds []float64
}

// begin draws the order of the items.
func (l *lab) begin(seed int) {
	l.seed = uint64(seed)
	items, queries := l.set.Split(l.seed, math.MaxInt)
	l.items, l.queries = l.set.Examples(items), l.set.Examples(queries)
}

// train trains on items with their labels.
func (l *lab) train(ctx context.Context, items sets.Examples) (*fit.Result, error) {
	opt := fit.Options{Bits: l.bits}
	if !l.defaults {
		opt = sets.Published(l.set.Modalities, l.bits, min(sets.PublishedAnchors, len(items)))
	}
	opt.Seed = l.seed
	return fit.Train(ctx, l.set.ModelModalities(), items, opt)
}

// row returns the row of a way; nil if there is none yet.
func (l *lab) row(way string, at int) *row {
	for _, r := range l.rows {
		if r.way == way && r.at == at {
			return r
		}
	}
	return nil
}

// add measures a model and adds it to the row of a way. The first labelled items have the codes of their
// labels.
func (l *lab) add(ctx context.Context, way string, at int, m *model.Model, items sets.Examples, labelled int,
	queries sets.Examples, seconds float64) error {
	r := l.row(way, at)
	if r == nil {
		r = &row{way: way, at: at}
		l.rows = append(l.rows, r)
	}
	e, q, modalities := m.NewEncoder(), m.Bits(), len(l.set.Modalities)
	code, z := codec.NewCode(q), make([][]float64, modalities)
	for t := range z {
		z[t] = make([]float64, q)
	}
	database := codec.NewCodes(q, len(items))
	for i, ex := range items {
		// An item whose labels the model does not know is coded as one without labels.
		if i >= labelled || !m.LabelCode(code, ex.Labels) {
			if err := l.fused(e, z, code, ex); err != nil {
				return err
			}
		}
		database.Append(code)
	}
	direction := 0
	for from := range modalities {
		codes := codec.NewCodes(q, len(queries))
		for _, ex := range queries {
			if err := e.ProjectVectors(z[0], from, ex.Vectors[from:from+1]); err != nil {
				return err
			}
			codes.Append(codec.PackSigns(code, z[0]))
		}
		found, err := eval.Evaluate(ctx, database, labelsOf(items), codes, labelsOf(queries), 50)
		if err != nil {
			return err
		}
		for to := range modalities {
			if to != from { // an item has one code
				if len(r.maps) <= direction {
					r.maps = append(r.maps, nil)
				}
				r.maps[direction] = append(r.maps[direction], found.MAP)
				direction++
			}
		}
	}
	r.items, r.seconds = append(r.items, float64(len(items))), append(r.seconds, seconds)
	return nil
}

// fused sets code to that of an item without labels; z is scratch memory.
func (l *lab) fused(e *model.Encoder, z [][]float64, code codec.Code, ex model.Example) error {
	for t := range z {
		if err := e.ProjectVectors(z[t], t, ex.Vectors[t:t+1]); err != nil {
			return err
		}
	}
	sum := make([]float64, len(z[0]))
	e.Model().Fuse(sum, z)
	codec.PackSigns(code, sum)
	return nil
}

func labelsOf(items sets.Examples) (all [][]uint32) {
	for _, ex := range items {
		all = append(all, ex.Labels)
	}
	return all
}

// print prints the rows, those of each way together. what is the name of row.at.
func (l *lab) print(stdout io.Writer, ways []string, what string) {
	columns := []string{"way", what}
	if what != "items" {
		columns = append(columns, "items")
	}
	for _, from := range l.set.Modalities {
		for _, to := range l.set.Modalities {
			if from != to {
				columns = append(columns, from+" to "+to)
			}
		}
	}
	common.Head(stdout, 1, append(columns, "seconds")...)
	for _, way := range ways {
		for _, r := range l.rows {
			if r.way != way {
				continue
			}
			cells := []string{way, strconv.Itoa(r.at)}
			if items, _ := common.MeanStd(r.items); what != "items" {
				cells = append(cells, fmt.Sprintf("%.0f", items))
			}
			for _, maps := range r.maps {
				mean, std := common.MeanStd(maps)
				cells = append(cells, fmt.Sprintf("%.4f +- %.4f", mean, std))
			}
			seconds, _ := common.MeanStd(r.seconds)
			common.Row(stdout, append(cells, fmt.Sprintf("%.2f", seconds))...)
		}
	}
}

// A way is a way to go on after the first training.
type way struct {
	name    string
	teacher model.Teacher
	lead    int
	labels  bool // items keep their labels
}

// online measures a stream of items.
func (c *config) online(ctx context.Context, l *lab, stdout io.Writer) error {
	ways := []way{{"labels", model.TeacherLabels, 0, true}, {"self", model.TeacherSelf, 0, false}}
	for t, name := range l.set.Modalities {
		ways = append(ways, way{"by " + name, model.TeacherModality, t, false})
	}
	for seed := range c.seeds {
		l.begin(seed)
		n := max(2, int(c.first*float64(len(l.items))))
		if c.parts > len(l.items)-n {
			return fmt.Errorf("--parts %d: the stream has %d items", c.parts, len(l.items)-n)
		}
		base, err := l.train(ctx, l.items[:n])
		if err != nil {
			return err
		}
		var ends []int
		for p := range c.parts {
			ends = append(ends, n+(p+1)*(len(l.items)-n)/c.parts)
		}
		for _, w := range ways {
			if err := l.stream(ctx, w, base, n, ends); err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
		}
		for _, end := range ends {
			if err := l.add(ctx, "none", end, base.Model, l.items[:end], n, l.queries, 0); err != nil {
				return err
			}
			start := time.Now()
			again, err := l.train(ctx, l.items[:end])
			if err != nil {
				return err
			}
			if err := l.add(ctx, "again", end, again.Model, l.items[:end], end, l.queries,
				time.Since(start).Seconds()); err != nil {
				return err
			}
		}
	}
	names := []string{"none"}
	for _, w := range ways {
		names = append(names, w.name)
	}
	l.print(stdout, append(names, "again"), "items")
	return nil
}

// stream goes on in one way, from the first n items to each of the ends.
func (l *lab) stream(ctx context.Context, w way, base *fit.Result, n int, ends []int) error {
	o, err := model.NewOnline(base.Model, base.Statistics.Clone())
	if err != nil {
		return err
	}
	from, seconds := n, 0.0
	for _, end := range ends {
		part := slices.Clone(l.items[from:end])
		for i := range part {
			if !w.labels {
				part[i].Labels = nil
			}
		}
		start := time.Now()
		if _, err := o.Learn(ctx, part, w.teacher, w.lead); err != nil {
			return err
		}
		m, err := o.Revision()
		if err != nil {
			return err
		}
		seconds, from = seconds+time.Since(start).Seconds(), end
		labelled := n
		if w.labels {
			labelled = end
		}
		if err := l.add(ctx, w.name, end, m, l.items[:end], labelled, l.queries, seconds); err != nil {
			return err
		}
	}
	return nil
}

// classes measures new labels.
func (c *config) classes(ctx context.Context, l *lab, stdout io.Writer) error {
	count := l.set.LabelCount()
	if count < 3 {
		return fmt.Errorf("the set has %d labels: give at least three", count)
	}
	if l.bits < count {
		return fmt.Errorf("--bits %d: a code of fewer bits than labels (%d) has no place for new ones", l.bits,
			count)
	}
	for seed := range c.seeds {
		l.begin(seed)
		order := rand.New(rand.NewPCG(l.seed, 33)).Perm(count)
		begin := max(2, int(c.first*float64(count)))
		var o *model.Online
		var taught map[int]bool // by number of the item
		seconds := 0.0
		for known := begin; known <= count; known++ {
			rows := within(l.items, order[:known])
			items, queries := pick(l.items, rows), pick(l.queries, within(l.queries, order[:known]))
			start := time.Now()
			again, err := l.train(ctx, items)
			if err != nil {
				return fmt.Errorf("%d labels: %w", known, err)
			}
			if err := l.add(ctx, "again", known, again.Model, items, len(items), queries,
				time.Since(start).Seconds()); err != nil {
				return err
			}
			if o == nil {
				if o, err = model.NewOnline(again.Model, again.Statistics.Clone()); err != nil {
					return err
				}
				taught = map[int]bool{}
				for _, i := range rows {
					taught[i] = true
				}
				continue
			}
			var fresh sets.Examples
			for _, i := range rows {
				if !taught[i] {
					taught[i], fresh = true, append(fresh, l.items[i])
				}
			}
			start = time.Now()
			if err := o.Grow(uint32(order[known-1])); err != nil {
				return err
			}
			if _, err := o.Learn(ctx, fresh, model.TeacherLabels, 0); err != nil {
				return err
			}
			m, err := o.Revision()
			if err != nil {
				return err
			}
			seconds += time.Since(start).Seconds()
			if err := l.add(ctx, "grown", known, m, items, len(items), queries, seconds); err != nil {
				return err
			}
		}
	}
	l.print(stdout, []string{"grown", "again"}, "labels")
	if c.seeds == 1 {
		return nil // one seed says nothing about chance
	}
	_, err := fmt.Fprintln(stdout, "\n"+l.pays(count))
	return err
}

// pays says from how many labels on a new training finds more than growing: by more than two standard errors
// of the difference in mAP, in the mean over the directions.
func (l *lab) pays(count int) string {
	var said string
	for _, r := range l.rows {
		again := l.row("again", r.at)
		if r.way != "grown" {
			continue
		}
		leads := make([]float64, len(r.seconds))
		for d, maps := range r.maps {
			for seed := range maps {
				leads[seed] += (again.maps[d][seed] - maps[seed]) / float64(len(r.maps))
			}
		}
		mean, std := common.MeanStd(leads)
		e := std / math.Sqrt(float64(len(leads)))
		switch ahead := mean > 2*e; {
		case ahead && said == "":
			said = fmt.Sprintf("A new training pays from %d labels on: it finds %+.4f mAP (standard error %.4f).",
				r.at, mean, e)
		case !ahead:
			said = ""
		}
	}
	return cmp.Or(said, fmt.Sprintf("With all %d labels a new training finds no more than growing does, within two standard errors.", count))
}

// within returns the numbers of the items all of whose labels are among the given ones.
func within(items sets.Examples, labels []int) (rows []int) {
	for i, ex := range items {
		if !slices.ContainsFunc(ex.Labels, func(l uint32) bool { return !slices.Contains(labels, int(l)) }) {
			rows = append(rows, i)
		}
	}
	return rows
}

func pick(items sets.Examples, rows []int) (some sets.Examples) {
	for _, i := range rows {
		some = append(some, items[i])
	}
	return some
}
