package forms

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
)

// A HitTable says which columns a table of hits has besides rank and key.
type HitTable struct {
	Codes      bool // else the answer is by vectors, and hits have no distance
	Score      bool // hits have a score without codes, too
	Similarity bool
	Labels     bool
	Fields     []db.Field
}

// NewHitTable returns the form of a table of the parts of items that are included.
func NewHitTable(schema db.Schema, include db.Include) HitTable {
	t := HitTable{Labels: include&db.IncludeLabels != 0}
	if include&db.IncludeFields != 0 {
		t.Fields = schema.Fields
	}
	return t
}

// TitleField returns the string field that says what an item is called: title, name or caption, nil without
// one.
func TitleField(schema db.Schema) *db.Field {
	for _, name := range []string{"title", "name", "caption"} {
		for i, f := range schema.Fields {
			if f.Name == name && f.Type == db.String {
				return &schema.Fields[i]
			}
		}
	}
	return nil
}

// HasSimilarity reports whether any hit has a similarity.
func HasSimilarity(r *db.Result) bool {
	return slices.ContainsFunc(r.Hits, func(h db.Hit) bool { return !math.IsNaN(float64(h.Similarity)) })
}

// Columns returns the columns.
func (t *HitTable) Columns() []term.Column {
	columns := []term.Column{term.Right("rank"), term.Left("key")}
	if t.Codes {
		columns = append(columns, term.Right("distance"))
	}
	if t.Codes || t.Score {
		columns = append(columns, term.Right("score"))
	}
	if t.Similarity {
		columns = append(columns, term.Right("similarity"))
	}
	if t.Labels {
		columns = append(columns, term.Left("labels"))
	}
	return append(columns, FieldColumns(t.Fields)...)
}

// Rows returns a row for each hit.
func (t *HitTable) Rows(r *db.Result) [][]any {
	var rows [][]any
	for i, h := range r.Hits {
		score := term.NoCell
		switch {
		case math.IsNaN(h.Score):
		case t.Score: // fused ranks are small
			score = term.NumberCell(h.Score, 5)
		default:
			score = term.NumberCell(h.Score, 3)
		}
		row := []any{i + 1, term.TextCell(h.Key)}
		if t.Codes {
			var distance any = h.Distance
			if h.Distance < 0 { // only words have found it
				distance = term.NoCell
			}
			row = append(row, distance)
		}
		if t.Codes || t.Score {
			row = append(row, score)
		}
		if t.Similarity {
			row = append(row, term.SimilarityCell(h.Similarity))
		}
		it := h.Item
		if it == nil {
			it = new(db.Item)
		}
		if t.Labels {
			row = append(row, term.TextCell(strings.Join(it.Labels, ",")))
		}
		rows = append(rows, append(row, FieldCells(t.Fields, it)...))
	}
	return rows
}

// PrintItem prints an item with all that it has.
func PrintItem(p *term.Printer, it *db.Item) {
	p.Printf("%s\n", term.Plain(it.Key))
	line := func(name, format string, args ...any) {
		p.Printf("  %-9s %s\n", name, fmt.Sprintf(format, args...))
	}
	if len(it.Labels) > 0 {
		line("labels", "%s", term.Plain(strings.Join(it.Labels, ", ")))
	}
	for _, name := range slices.Sorted(maps.Keys(it.Fields)) {
		line("field", "%s = %s", name, term.Plain(term.Value(it.Fields[name])))
	}
	for _, name := range slices.Sorted(maps.Keys(it.Vectors)) {
		line("vector", "%s, %s", name, vectorStart(it.Vectors[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(it.Sparse)) {
		line("vector", "%s, %s", name, sparseStart(it.Sparse[name]))
	}
	for _, name := range it.Modalities {
		line("vector", "%s, not in this copy", name)
	}
	if len(it.Code) > 0 {
		line("code", "%s, %s", hex.EncodeToString(it.Code), codeOrigin(it.CodeFrom))
	}
	if len(it.Payload) > 0 {
		line("payload", "%s", term.Size(int64(len(it.Payload))))
	}
}

// codeOrigin returns the origin of a code in words.
func codeOrigin(from string) string {
	switch from {
	case "given":
		return "given"
	case "fused":
		return "from its vectors"
	}
	return "from its " + from
}

// vectorStart returns the first numbers of a vector as text.
func vectorStart(x []float32) string {
	return numbersStart(len(x), "number", "numbers", func(i int) string { return fmt.Sprintf("%.4g", x[i]) })
}

// sparseStart returns the first numbers of a sparse vector as text.
func sparseStart(x db.Sparse) string {
	return numbersStart(len(x.Index), "number not 0", "numbers not 0", func(i int) string {
		return fmt.Sprintf("%d:%.4g", x.Index[i], x.Value[i])
	})
}

func numbersStart(n int, one, many string, number func(i int) string) string {
	const most = 6
	var b strings.Builder
	b.WriteString(term.Plural(n, one, many))
	for i := range min(most, n) {
		if i == 0 {
			b.WriteByte(':')
		}
		b.WriteString(" " + number(i))
	}
	if n > most {
		b.WriteString(" ...")
	}
	return b.String()
}

// FieldColumns returns a column for each field.
func FieldColumns(fields []db.Field) (columns []term.Column) {
	for _, f := range fields {
		if f.Type == db.Int || f.Type == db.Float {
			columns = append(columns, term.Right(f.Name))
		} else {
			columns = append(columns, term.Left(f.Name))
		}
	}
	return columns
}

// FieldCells returns the cells of an item for these columns.
func FieldCells(fields []db.Field, it *db.Item) (cells []any) {
	for _, f := range fields {
		switch x := it.Fields[f.Name].(type) {
		case nil:
			cells = append(cells, term.NoCell)
		case time.Time:
			cells = append(cells, term.Value(x))
		default:
			cells = append(cells, x)
		}
	}
	return cells
}

// FacetColumns are the columns of FacetRows.
var FacetColumns = []term.Column{term.Left("facet"), term.Left("value"), term.Right("items")}

// CutFacets leaves the first counts of each facet: 1,000, or the 10 of a table, which is for people.
func CutFacets(r *db.Result, json bool) {
	limit := 10
	if json {
		limit = 1000
	}
	for i := range r.Facets {
		f := &r.Facets[i]
		f.Counts = f.Counts[:min(limit, len(f.Counts))]
	}
}

// FacetRows returns a row for each count of an answer.
func FacetRows(r *db.Result) (rows [][]any) {
	for i := range r.Facets {
		for _, n := range Counts(&r.Facets[i]) {
			rows = append(rows, []any{term.TextCell(r.Facets[i].By), ValueCell(n.Value),
				term.CountCell(n.Items)})
		}
	}
	return rows
}

// PrintFacets prints the counts of an answer, if there are some.
func PrintFacets(p *term.Printer, r *db.Result) {
	if rows := FacetRows(r); len(rows) > 0 {
		p.Printf("\n")
		p.PrintTable(FacetColumns, rows)
	}
	for i := range r.Facets {
		if more := r.Facets[i].Distinct - len(r.Facets[i].Counts); more > 0 {
			p.Printf("and %s more of %s\n", term.Thousands(more), term.Plain(r.Facets[i].By))
		}
	}
}

// PrintValues prints the table of the counts of a field, or of labels, as facets does. head is the head of
// the values.
func PrintValues(p *term.Printer, head string, f *db.Facets) {
	var rows [][]any
	for _, n := range Counts(f) {
		rows = append(rows, []any{ValueCell(n.Value), term.CountCell(n.Items)})
	}
	p.PrintTable([]term.Column{term.Left(head), term.Right("items")}, rows)
	if more := f.Distinct - len(f.Counts); more > 0 {
		p.Printf("and %s more\n", term.Thousands(more))
	}
}

// Counts returns the counts, and if any item lacks a value, last those with the value nil.
func Counts(f *db.Facets) []db.FacetCount {
	if f.Missing == 0 {
		return f.Counts
	}
	return append(f.Counts[:len(f.Counts):len(f.Counts)], db.FacetCount{Items: f.Missing})
}

// ValueCell returns the cell of a value: for people, and in data as JSON has numbers.
func ValueCell(v any) any {
	switch v := v.(type) {
	case nil:
		return term.NewCell("null", "")
	case string:
		return v
	case time.Time:
		return term.Value(v)
	}
	b, err := json.Marshal(v)
	if err != nil { // no float that is stored: these are finite
		return v
	}
	return term.NewCell(string(b), string(b))
}

// ParseField parses NAME:TYPE[:index][:words].
func ParseField(s string) (db.Field, error) {
	parts := strings.Split(s, ":")
	if len(parts) < 2 || parts[0] == "" {
		return db.Field{}, errors.New("NAME:TYPE is expected, such as year:int")
	}
	f := db.Field{Name: parts[0], Type: db.FieldType(parts[1])}
	switch f.Type {
	case db.String, db.Int, db.Float, db.Bool, db.Time:
	default:
		return db.Field{}, fmt.Errorf("unknown type %q: string, int, float, bool and time are possible",
			parts[1])
	}
	for _, index := range parts[2:] {
		switch index {
		case "index":
			f.Indexed = true
		case "words":
			f.Words = true
		default:
			return db.Field{}, fmt.Errorf("%q is unknown: index and words can stand behind the type", index)
		}
	}
	return f, nil
}

// DescribeField returns type and indexes of a field, for people.
func DescribeField(f db.Field) string {
	text := string(f.Type)
	if f.Indexed {
		text += ", indexed"
	}
	if f.Words {
		text += ", words indexed"
	}
	return text
}

// DescribeMetric returns how vectors of a modality are compared, for the end of a list; "" by the
// cosine, in a space that it shares with none before it.
func DescribeMetric(m db.Modality) (text string) {
	if m.Metric != "" {
		text += ", by " + string(m.Metric)
	}
	if m.SpaceOf != "" {
		text += ", in the space of " + m.SpaceOf
	}
	return text
}

// DescribeSchema returns a schema in one line, for people.
func DescribeSchema(s db.Schema) string {
	var parts []string
	for _, m := range s.Modalities {
		sparse := ""
		if m.Sparse {
			sparse = ", sparse"
		}
		parts = append(parts, fmt.Sprintf("%s (%s%s%s)", m.Name,
			term.Plural(m.Dim, "dimension", "dimensions"), sparse, DescribeMetric(m)))
	}
	if s.Bits > 0 {
		by := ""
		if s.Hash != "" {
			by = " by " + s.Hash
		}
		parts = append(parts, fmt.Sprintf("codes of %d bits%s", s.Bits, by))
	}
	for _, f := range s.Fields {
		parts = append(parts, fmt.Sprintf("field %s (%s)", f.Name, DescribeField(f)))
	}
	return strings.Join(parts, ", ")
}
