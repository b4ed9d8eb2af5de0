package methods

import (
	"fmt"
	"image/color"
	"path/filepath"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/experiments/chart"
	"github.com/fddhdb/fddhdb/experiments/common"
)

// notes say what a protocol measures.
var notes = map[string]string{
	unlabelled: "Half of the training items have labels and train; the database is the other half, coded by projections.",
	labelled:   "The database is the training items, with the codes that their labels have taught. Where the database has labels a ranking is classification of the query, and precision is flat in K.",
}

// print prints the tables of a set, or its rows as JSON.
func (o *options) print(p *term.Printer, dir string, tables []*table) error {
	for _, t := range tables {
		if o.json {
			for _, r := range t.rows {
				if err := p.PrintJSON(r); err != nil {
					return err
				}
			}
			continue
		}
		p.Printf("%s, %s. %s\n\n", filepath.Base(filepath.Clean(dir)), t.split, notes[t.split])
		o.write(p, t.quality(o.bits))
		for _, bits := range o.bits {
			p.Printf("%d bits: precision of the first %d, and the lead in mAP over the best other method, +- its standard error over %d seeds.\n\n",
				bits, o.top, o.seeds)
			o.write(p, t.details(bits))
		}
	}
	return p.Stdout.Flush()
}

// write writes a table in Markdown or LaTeX.
func (o *options) write(p *term.Printer, cells [][]string) {
	if !o.latex {
		common.Head(p.Stdout, 1, cells[0]...)
		for _, row := range cells[1:] {
			common.Row(p.Stdout, row...)
		}
		p.Printf("\n")
		return
	}
	p.Printf("\\begin{tabular}{l%s}\n\\hline\n", strings.Repeat("r", len(cells[0])-1))
	escape := strings.NewReplacer("->", "$\\to$", "+-", "$\\pm$", "_", "\\_", "%", "\\%", "&", "\\&", "#", "\\#",
		"\x00", " & ")
	for i, row := range cells {
		p.Printf("%s \\\\\n", escape.Replace(strings.Join(row, "\x00")))
		if i == 0 {
			p.Printf("\\hline\n")
		}
	}
	p.Printf("\\hline\n\\end{tabular}\n\n")
}

// quality returns a table in the form of the papers: a row a method, a column a length of codes, mAP with ties
// by row and, in brackets, expected over them.
func (t *table) quality(lengths []int) [][]string {
	head := []string{"mAP (ties expected)"}
	for _, d := range t.rows[0].Directions {
		for _, bits := range lengths {
			head = append(head, fmt.Sprintf("%s->%s, %d", d.From, d.To, bits))
		}
	}
	cells := [][]string{head}
	for _, name := range t.names() {
		line := []string{name}
		for at := range t.rows[0].Directions {
			for _, bits := range lengths {
				cell := "-"
				if r := t.find(name, bits); r != nil {
					d := r.Directions[at]
					cell = fmt.Sprintf("%s (%s)", common.Share(d.MAP), common.Share(d.MAPTie))
				}
				line = append(line, cell)
			}
		}
		cells = append(cells, line)
	}
	return cells
}

// details returns the other figures of codes of one length.
func (t *table) details(bits int) [][]string {
	head := []string{"method"}
	for _, d := range t.rows[0].Directions {
		head = append(head, fmt.Sprintf("precision, %s->%s", d.From, d.To), "lead", "over")
	}
	cells := [][]string{append(head, "seconds", "MiB allocated")}
	for _, r := range t.of(bits) {
		line := []string{r.Method}
		for _, d := range r.Directions {
			line = append(line, common.Share(d.Precision), fmt.Sprintf("%+.4f +- %.4f", d.Lead, d.LeadError), d.Best)
		}
		cells = append(cells, append(line, fmt.Sprintf("%.2f", r.Seconds), strconv.Itoa(int(r.MiB+.5))))
	}
	return cells
}

// names returns the names of the rows, each once.
func (t *table) names() (names []string) {
	seen := map[string]bool{}
	for _, r := range t.rows {
		if !seen[r.Method] {
			names = append(names, r.Method)
		}
		seen[r.Method] = true
	}
	return names
}

func (t *table) find(name string, bits int) *row {
	for _, r := range t.of(bits) {
		if r.Method == name {
			return r
		}
	}
	return nil
}

// draw draws, for each protocol and pair of modalities, mAP by bits if there are several lengths, and for the
// longest codes precision by recall and precision of the first K.
func (o *options) draw(tables []*table) (*chart.Figure, error) {
	f := &chart.Figure{Columns: 2, Width: chart.PanelWidth, Height: 300, LegendWidth: 150}
	if len(o.bits) > 1 {
		f.Columns = 3
	}
	for _, name := range tables[len(tables)-1].names() {
		f.Legend = append(f.Legend, style(len(f.Legend), name))
	}
	longest := o.bits[0]
	var ticks []float64
	for _, bits := range o.bits {
		longest, ticks = max(longest, bits), append(ticks, float64(bits))
	}
	for _, t := range tables {
		for at, d := range t.rows[0].Directions {
			title := chart.DirectionOf(d.From, d.To) + ", " + t.split
			curves := []struct {
				x, y   string
				bits   []int
				points func(r *row) plotter.XYs
				finish func(p *plot.Plot)
			}{
				{"bits", "mAP", o.bits, func(r *row) plotter.XYs {
					return plotter.XYs{{X: float64(r.Bits), Y: r.Directions[at].MAP}}
				}, func(p *plot.Plot) { p.X.Tick.Marker = chart.TicksAt(ticks) }},
				{"recall", "precision", []int{longest}, func(r *row) (points plotter.XYs) {
					for _, q := range r.Directions[at].ByRadius {
						if q.Recall > 0 {
							points = append(points, plotter.XY{X: q.Recall, Y: q.Precision})
						}
					}
					return points
				}, func(*plot.Plot) {}},
				{"first K", "precision", []int{longest}, func(r *row) (points plotter.XYs) {
					for _, q := range r.Directions[at].ByTop {
						points = append(points, plotter.XY{X: float64(q.K), Y: q.Precision})
					}
					return points
				}, func(p *plot.Plot) {
					p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, chart.TicksAt([]float64{1, 10, 100, 1000})
				}},
			}
			for _, c := range curves[3-f.Columns:] {
				p := chart.NewPanel(title, c.x, c.y)
				for i, name := range t.names() {
					var points plotter.XYs
					for _, bits := range c.bits {
						if r := t.find(name, bits); r != nil {
							points = append(points, c.points(r)...)
						}
					}
					if err := chart.AddCurve(p, style(i, name), points); err != nil {
						return nil, err
					}
				}
				chart.Widen(&p.Y, chart.LeastSpan)
				c.finish(p)
				f.Panels = append(f.Panels, p)
			}
		}
	}
	return f, nil
}

// style returns a style for curve i.
func style(i int, name string) chart.CurveStyle {
	dashes := [][]vg.Length{nil, {6, 3}, {2, 2}, {8, 2, 2, 2}, {1, 3}}
	marks := []draw.GlyphDrawer{draw.CircleGlyph{}, draw.TriangleGlyph{}, draw.SquareGlyph{}, draw.PyramidGlyph{},
		draw.CrossGlyph{}, draw.PlusGlyph{}, draw.RingGlyph{}}
	s := chart.CurveStyle{Name: name, Dashes: dashes[i/5%len(dashes)], Glyph: marks[i%len(marks)]}
	s.Color = []color.Color{chart.Blue, chart.Orange, chart.Vermillion, chart.Green, chart.Purple}[i%5]
	return s
}
