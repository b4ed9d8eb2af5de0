package term

// Nearest returns the name that a mistyped word most likely means. It returns "" if
// none is close: if more than a third of the word, and at least two letters, are wrong.
func Nearest(word string, names []string) string {
	best, least := "", max(2, len(word)/3)+1
	for _, name := range names {
		d := editDistance(word, name)
		if d < least && d < len(name) {
			best, least = name, d
		}
	}
	return best
}

// editDistance returns the number of letters to insert, delete, replace or swap with
// their neighbour to turn a into b.
func editDistance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, last, row = last, row, before
		row[0] = i
		for j := 1; j <= len(b); j++ {
			wrong := 1
			if a[i-1] == b[j-1] {
				wrong = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+wrong)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return row[len(b)]
}
