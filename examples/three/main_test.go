package main

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
)

// Each kind finds what belongs to it in each other kind, and words find the picture
// without words.
func TestThree(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout := os.Stdout
	os.Stdout = w
	main()
	os.Stdout = stdout
	w.Close()
	out, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	hits := regexp.MustCompile(`^(.*), (sound|picture|text)s: (\w+) \d+ \(\d+ bits\) (\w+) \d+ \(\d+ bits\) (\w+) \d+ \(\d+ bits\)$`)
	want := map[string]string{`"waves on the beach"`: "sea", "the sound of a guitar": "guitar", "a picture of a dog": "dog"}
	pairs := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSpace(line)
		var from, to string
		var quality float64
		if found := hits.FindStringSubmatch(line); found != nil {
			for _, thing := range found[3:] {
				if thing != want[found[1]] {
					t.Error(line)
				}
			}
			delete(want, found[1])
		} else if n, _ := fmt.Sscanf(line, "%s finds %s mAP %f", &from, &to, &quality); n == 3 {
			if pairs[from+to] = true; quality < .9 {
				t.Error(line)
			}
		}
	}
	if len(want) > 0 || len(pairs) != 6 || !strings.HasSuffix(string(out), "finds the new picture of a train: true\n") {
		t.Errorf("output:\n%s", out)
	}
}
