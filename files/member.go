package files

import "strings"

// containers are the extensions of files that may hold several matrices.
var containers = []string{".npz", ".jsonl", ".mat", ".parquet"}

// splitMember cuts paths such as FILE.npz:NAME at the last of these extensions that a
// colon follows.
func splitMember(path string) (file, member string) {
	lower := strings.ToLower(path)
	cut := -1
	for _, ext := range containers {
		if i := strings.LastIndex(lower, ext+":"); i >= 0 {
			cut = max(cut, i+len(ext))
		}
	}
	if cut < 0 {
		return path, ""
	}
	return path[:cut], path[cut+1:]
}
