package term

import (
	"bufio"
	"bytes"
	"slices"
	"testing"
)

// However lines are cut into writes, the array is the same.
func TestJSONArray(t *testing.T) {
	const lines = "{\"a\":1}\n{\"b\":2}\n{}\n"
	for size := 1; size <= len(lines); size++ {
		var out bytes.Buffer
		a := &jsonArray{out: bufio.NewWriter(&out)}
		for part := range slices.Chunk([]byte(lines), size) {
			if _, err := a.Write(part); err != nil {
				t.Fatal(err)
			}
		}
		a.out.Flush()
		if got, want := out.String(), "[{\"a\":1},\n{\"b\":2},\n{}"; got != want {
			t.Errorf("by %d bytes: %q, want %q", size, got, want)
		}
	}
}
