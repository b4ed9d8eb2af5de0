package flags

import "strings"

// SplitList splits a,b,... without surrounding blanks and empty entries.
func SplitList(s string) []string {
	var list []string
	for _, f := range strings.Split(s, ",") {
		if f = strings.TrimSpace(f); f != "" {
			list = append(list, f)
		}
	}
	return list
}
