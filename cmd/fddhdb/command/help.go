package command

import "strings"

// Groups in which help lists the verbs.
const (
	groupItems  = "items"
	groupLearn  = "learn"
	groupSpaces = "spaces"
	groupLook   = "look"
	groupBackup = "backup"
	groupOther  = "other"
)

// prose removes the indentation of the source from a help text.
func prose(s string) string {
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

// example is prose, indented.
func example(s string) string {
	return "  " + strings.ReplaceAll(strings.ReplaceAll(prose(s), "\n", "\n  "), "\n  \n", "\n\n")
}
