package doctest

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	byName  = regexp.MustCompile(`\]\[(\w+)\]`)
	heading = regexp.MustCompile(`^#{1,6} (.+)$`)
)

// anchors returns the anchors that GitHub makes of the headings of a document.
func anchors(lines []string) map[string]bool {
	found := map[string]bool{}
	fenced := false
	for _, line := range lines {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
		}
		h := heading.FindStringSubmatch(line)
		if fenced || h == nil {
			continue
		}
		anchor := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r > 127:
				return r
			}
			return -1
		}, strings.ToLower(h[1]))
		found[anchor] = true
	}
	return found
}

// Links lead to files and headings that exist.
func TestLinks(t *testing.T) {
	for _, d := range documents(t) {
		text := strings.Join(d.lines, "\n")
		for i, line := range d.lines {
			for _, found := range byName.FindAllStringSubmatch(line, -1) {
				if !strings.Contains(text, "\n["+found[1]+"]: ") {
					t.Errorf("%s: [%s] is not defined", d.at(i), found[1])
				}
			}
			for _, found := range link.FindAllStringSubmatch(line, -1) {
				to, anchor, _ := strings.Cut(found[1], "#")
				if strings.Contains(to, "://") {
					continue
				}
				lines := d.lines
				if to != "" {
					file := path.Join(path.Dir(d.path), to)
					if strings.HasPrefix(file, "../") {
						t.Errorf("%s: %s leads out of the repository", d.at(i), found[1])
						continue
					}
					b, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
					if info, dirErr := os.Stat(filepath.Join(root, filepath.FromSlash(file))); err != nil &&
						(dirErr != nil || !info.IsDir()) {
						t.Errorf("%s: %s is not there", d.at(i), found[1])
						continue
					}
					lines = strings.Split(string(b), "\n")
				}
				if anchor != "" && !anchors(lines)[anchor] {
					t.Errorf("%s: %s: there is no such heading", d.at(i), found[1])
				}
			}
		}
	}
}
