package where

import "strings"

// String returns the expression as a user could type it, with the parentheses that it
// needs, and with values in place of placeholders. Parsing it gives the same expression.
func (e *Expr) String() string { return printed(e.root) }

// printed returns a part of an expression as a user could type it.
func printed(n node) string {
	switch n := n.(type) {
	case *or:
		parts := make([]string, len(n.parts))
		for i, p := range n.parts {
			parts[i] = printed(p)
		}
		return strings.Join(parts, " OR ")
	case *and:
		parts := make([]string, len(n.parts))
		for i, p := range n.parts {
			_, bracket := p.(*or) // as AND binds closer
			parts[i] = inBrackets(p, bracket)
		}
		return strings.Join(parts, " AND ")
	case *not:
		switch n.x.(type) {
		case *or, *and: // as NOT binds closest
			return "NOT " + inBrackets(n.x, true)
		}
		if x, ok := n.x.(*has); ok && x.null {
			return printedName(x.name) + " IS NULL"
		}
		return "NOT " + printed(n.x)
	case *has:
		if n.null {
			return printedName(n.name) + " IS NOT NULL"
		}
		return "has(" + printedName(n.name) + ")"
	case labelled:
		return "has(label)"
	}
	t := n.(*test)
	name := "label"
	if !t.label {
		name = printedName(t.field)
	}
	if t.not {
		name += " NOT"
	}
	var values strings.Builder
	writeValues(&values, t.values[:1], false)
	switch t.op {
	case in:
		values.Reset()
		writeValues(&values, t.values, true)
	case between:
		values.WriteString(" AND ")
		writeValues(&values, t.values[1:], false)
	}
	return name + " " + opText[t.op] + " " + values.String()
}

// inBrackets returns a part of an expression, in parentheses if bracket is set.
func inBrackets(n node, bracket bool) string {
	if bracket {
		return "(" + printed(n) + ")"
	}
	return printed(n)
}

// printedName returns a name, in double quotes if it could be read as something else.
func printedName(name string) string {
	plain := name != "" && !isKeyword(name)
	for i, r := range name {
		if i == 0 && !isStart(r) || !isPart(r) {
			plain = false
		}
	}
	if plain {
		return name
	}
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}
