package textform

import "testing"

func TestCodeOrigin(t *testing.T) {
	for from, want := range map[string]string{"labels": "from its labels", "fused": "from its vectors", "given": "given", "image": "from its image"} {
		if got := codeOrigin(from); got != want {
			t.Errorf("%s: %s", from, got)
		}
	}
}
