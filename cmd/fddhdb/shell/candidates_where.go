package shell

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// comparisons are the operators of an expression that precede a value.
var comparisons = []string{"=", "!=", "<", "<=", ">", ">="}

// whereCandidates completes the last word of an expression of --where by the words
// before it: a name, an operator, a label, or a word that joins comparisons.
func (w completer) whereCandidates(cmd *cobra.Command, dir, expr string) []string {
	words, typed := cutWhere(expr)
	head := expr[:typed]
	if operand, ok := comparedTo(words); ok {
		if !strings.EqualFold(operand, "label") {
			return nil
		}
		var values []string
		for _, l := range w.labels(cmd, dir) {
			values = append(values, "'"+strings.ReplaceAll(l, "'", "''")+"'")
		}
		return prefixed(head, values)
	}
	_, inList := comparedTo(words[:max(0, len(words)-1)])
	switch last := fromEnd(words, 1); {
	case inList && isAny(fromEnd(words, 2), "(", ","):
		return prefixed(head, []string{", ", ") "})
	case last == "(" && strings.EqualFold(fromEnd(words, 2), "has"):
		return prefixed(head, suffixed(slices.Concat(w.modalities(cmd, dir), w.fields(cmd, dir), []string{"label"}), ") "))
	case last == "", last == "(", isAny(last, "AND", "OR", "NOT"):
		return prefixed(head, append([]string{"label = '", "has(", "NOT "}, suffixed(w.fields(cmd, dir), " ")...))
	case isAny(last, "LIKE"):
		return prefixed(head, []string{"'"})
	case isAny(last, "IS"):
		return prefixed(head, []string{"NULL ", "NOT NULL "})
	case last == ")", last[0] == '\'', isAny(last, "NULL"), slices.Contains(comparisons, fromEnd(words, 2)): // a test ends here
		if strings.HasSuffix(head, last) {
			head += " "
		}
		return prefixed(head, []string{"AND ", "OR "})
	case isAny(last, "label"):
		return prefixed(head, append(suffixed(comparisons, " "), "IN ("))
	case slices.Contains(w.fields(cmd, dir), strings.Trim(last, `"`)):
		return prefixed(head, append(suffixed(comparisons, " "), "IN (", "LIKE '", "IS NULL ", "IS NOT NULL "))
	}
	return nil
}

// LabelsIn returns the labels that an expression compares with, each once, in their
// order.
func LabelsIn(expr string) []string {
	var labels []string
	words, _ := cutWhere(expr)
	for i, w := range words {
		if w[0] != '\'' {
			continue
		}
		if operand, ok := comparedTo(words[:i]); ok && isAny(operand, "label") {
			label := strings.ReplaceAll(w[1:len(w)-1], "''", "'")
			if !slices.Contains(labels, label) {
				labels = append(labels, label)
			}
		}
	}
	return labels
}

// comparedTo returns the name with which a value after these words is compared. ok is
// false if this is no place for a value: after NAME and an operator, or in the list
// after NAME IN.
func comparedTo(words []string) (name string, ok bool) {
	if slices.Contains(comparisons, fromEnd(words, 1)) {
		return fromEnd(words, 2), true
	}
	for fromEnd(words, 1) == "," {
		words = words[:max(0, len(words)-2)] // with the value before it
	}
	return fromEnd(words, 3), fromEnd(words, 1) == "(" && isAny(fromEnd(words, 2), "IN")
}

// cutWhere cuts an expression into names, numbers, operators, and strings with their
// quotes. It leaves out a last word that can go on: a name or number at the very end,
// or an open string. typed is the byte at which that word begins, or the end.
func cutWhere(expr string) (words []string, typed int) {
	const blanks, symbols = " \t\r\n", "=!<>(),"
	for i := 0; i < len(expr); {
		from := i
		switch c := expr[i]; {
		case strings.IndexByte(blanks, c) >= 0:
			i++
			continue
		case c == '\'' || c == '"':
			for i++; i < len(expr) && (expr[i] != c || i+1 < len(expr) && expr[i+1] == c); i++ {
				if expr[i] == c {
					i++ // a doubled quote inside the string
				}
			}
			if i == len(expr) {
				return words, from
			}
			i++
		case strings.IndexByte(symbols, c) >= 0:
			i++
			if strings.IndexByte("!<>", c) >= 0 && strings.HasPrefix(expr[i:], "=") {
				i++
			}
		default:
			n := strings.IndexAny(expr[i:], blanks+symbols+`'"`)
			if n < 0 {
				return words, from
			}
			i += n
		}
		words = append(words, expr[from:i])
	}
	return words, len(expr)
}

// fromEnd returns the n-th word from the end, "" if there are fewer.
func fromEnd(words []string, n int) string {
	if len(words) < n {
		return ""
	}
	return words[len(words)-n]
}

// isAny reports whether a word is one of some keywords, in any case.
func isAny(word string, keywords ...string) bool {
	return slices.ContainsFunc(keywords, func(k string) bool { return strings.EqualFold(k, word) })
}
