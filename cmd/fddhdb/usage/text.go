package usage

import "strings"

// Prose removes the indentation of the source from a help text.
func Prose(s string) string {
	lines := strings.Split(strings.Trim(s, "\n"), "\n")
	indent := len(lines[0]) - len(strings.TrimLeft(lines[0], "\t"))
	for i, line := range lines {
		for n := 0; n < indent && strings.HasPrefix(line, "\t"); n++ {
			line = line[1:]
		}
		lines[i] = strings.TrimRight(line, " \t")
	}
	return strings.Join(lines, "\n")
}

// Example is Prose, indented.
func Example(s string) string {
	return "  " + strings.ReplaceAll(strings.ReplaceAll(Prose(s), "\n", "\n  "), "\n  \n", "\n\n")
}
