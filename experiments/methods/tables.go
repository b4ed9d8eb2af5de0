package methods

import (
	"fmt"
	"image/color"
	"strings"

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
	labelled:   "The database is the training items, with the codes that they have learned. Where the database has labels a ranking is classification of the query, and precision is flat in K.",
}

// groups returns rows by what f says of them, in the order of the first of each.
func groups(rows []*row, f func(r *row) string) (names []string, of map[string][]*row) {
	of = map[string][]*row{}
	for _, r := range rows {
		if of[f(r)] == nil {
			names = append(names, f(r))
		}
		of[f(r)] = append(of[f(r)], r)
	}
	return names, of
}

func (r *row) method() string { return r.Method }

// print prints, for each protocol, mAP in the form of the papers and a table of the rest; or rows as JSON.
func (l *lab) print(p *term.Printer) error {
	splits, of := groups(l.rows, func(r *row) string { return r.Split })
	for _, split := range splits {
		directions, _ := groups(of[split], (*row).direction)
		names, byName := groups(of[split], (*row).method)
		head, rest := []string{"mAP (ties expected)"}, [][]string{{"method", "direction", "bits",
			fmt.Sprintf("precision at %d", l.top), "lead", "over the best other", "seconds", "MiB allocated"}}
		for _, d := range directions {
			for _, bits := range l.bits {
				head = append(head, fmt.Sprintf("%s, %d", d, bits))
			}
		}
		maps := [][]string{head}
		for _, name := range names {
			cells := map[string]string{}
			for _, r := range byName[name] {
				if l.json {
					if err := p.PrintJSON(r); err != nil {
						return err
					}
				}
				share, column := common.Share, fmt.Sprintf("%s, %d", r.direction(), r.Bits)
				cells[column] = share(r.MAP) + " (" + share(r.MAPTie) + ")"
				lead := fmt.Sprintf("%+.4f", r.Lead)
				if l.seeds > 1 {
					lead += fmt.Sprintf(" +- %.4f", r.LeadError)
				}
				rest = append(rest, []string{name, r.direction(), fmt.Sprint(r.Bits), share(r.Precision),
					lead, r.Best, fmt.Sprintf("%.2f", r.Seconds),
					fmt.Sprintf("%.0f", r.MiB)})
			}
			line := []string{name}
			for _, column := range head[1:] {
				line = append(line, cells[column])
			}
			maps = append(maps, line)
		}
		if !l.json {
			name := l.name
			if l.latex {
				name = strings.ReplaceAll(name, "_", `\_`)
			}
			p.Printf("%s, %s: %s\n\n", name, split, notes[split])
			l.write(p, maps)
			if l.seeds > 1 {
				p.Printf("The lead is over %d seeds, +- its standard error.\n\n", l.seeds)
			}
			l.write(p, rest)
		}
	}
	return p.Stdout.Flush()
}

// write writes a table in Markdown or LaTeX.
func (l *lab) write(p *term.Printer, cells [][]string) {
	if !l.latex {
		common.Head(p.Stdout, 1, cells[0]...)
		for _, row := range cells[1:] {
			common.Row(p.Stdout, row...)
		}
		p.Printf("\n")
		return
	}
	escape := strings.NewReplacer("->", `$\to$`, "+-", `$\pm$`, "_", `\_`, "%", `\%`, "&", `\&`, "#", `\#`,
		"\x00", " & ")
	p.Printf("\\begin{tabular}{l%s}\n", strings.Repeat("r", len(cells[0])-1))
	for _, row := range cells {
		p.Printf("%s \\\\\n", escape.Replace(strings.Join(row, "\x00")))
	}
	p.Printf("\\end{tabular}\n\n")
}

// draw draws, for each protocol and pair of modalities, mAP by bits, and precision by recall of the longest
// codes.
func (l *lab) draw() (*chart.Figure, error) {
	longest, ticks := 0, []float64(nil)
	for _, bits := range l.bits {
		longest, ticks = max(longest, bits), append(ticks, float64(bits))
	}
	styles := map[string]chart.CurveStyle{}
	names, _ := groups(l.rows, (*row).method)
	f := &chart.Figure{Columns: min(len(ticks), 2), Width: chart.PanelWidth,
		Height: vg.Length(max(320, 40+16*len(names))), LegendWidth: 150}
	for i, name := range names {
		styles[name] = styleOf(i, name)
		f.Legend = append(f.Legend, styles[name])
	}
	panels, of := groups(l.rows, func(r *row) string {
		return chart.DirectionOf(r.From, r.To) + ", " + r.Split
	})
	for _, title := range panels {
		byBits := chart.NewPanel(title+": by length", "bits", "mAP")
		byRecall := chart.NewPanel(fmt.Sprintf("%s: %d bits", title, longest), "recall", "precision")
		byRecall.X.Min, byRecall.X.Max, byRecall.Y.Min, byRecall.Y.Max = 0, 1, 0, 1
		names, of := groups(of[title], (*row).method)
		for _, name := range names {
			var lengths, recalls plotter.XYs
			for _, r := range of[name] {
				lengths = append(lengths, plotter.XY{X: float64(r.Bits), Y: r.MAP})
				for _, q := range r.ByRadius {
					if q.Recall > 0 && r.Bits == longest {
						recalls = append(recalls, plotter.XY{X: q.Recall, Y: q.Precision})
					}
				}
			}
			if err := chart.AddCurve(byBits, styles[name], lengths); err != nil {
				return nil, err
			}
			if err := chart.AddCurve(byRecall, styles[name], recalls); err != nil {
				return nil, err
			}
		}
		byBits.X.Tick.Marker = chart.TicksAt(ticks)
		chart.Widen(&byBits.Y, chart.LeastSpan)
		if len(ticks) > 1 {
			f.Panels = append(f.Panels, byBits)
		}
		f.Panels = append(f.Panels, byRecall)
	}
	return f, nil
}

// styleOf returns the style of the i-th method of a figure.
func styleOf(i int, name string) chart.CurveStyle {
	return chart.CurveStyle{Name: name,
		Color:  []color.Color{chart.Blue, chart.Orange, chart.Vermillion, chart.Green, chart.Purple}[i%5],
		Dashes: [][]vg.Length{nil, {6, 3}, {2, 2}, {8, 2, 2, 2}, {1, 3}}[i/5%5],
		Glyph: []draw.GlyphDrawer{draw.CircleGlyph{}, draw.TriangleGlyph{}, draw.SquareGlyph{},
			draw.PyramidGlyph{}, draw.CrossGlyph{}, draw.PlusGlyph{}, draw.RingGlyph{}}[i%7]}
}
