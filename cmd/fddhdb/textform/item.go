package textform

import (
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
)

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
