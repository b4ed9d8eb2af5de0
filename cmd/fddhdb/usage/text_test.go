package usage

import "testing"

func TestProse(t *testing.T) {
	const source = "\n\t\t\tOne\n\t\t\t  two\n\n\t\t\tthree"
	if got, want := Prose(source), "One\n  two\n\nthree"; got != want {
		t.Errorf("prose: %q, want %q", got, want)
	}
	if got, want := Example(source), "  One\n    two\n\n  three"; got != want {
		t.Errorf("example: %q, want %q", got, want)
	}
}
