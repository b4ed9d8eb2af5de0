package metamorphic

import (
	"strings"
	"testing"
)

// The text of a program gives the same program again, and so does its seed.
func TestProgramsAreTheirText(t *testing.T) {
	for seed := range uint64(20) {
		p := Generate(seed, Profile{Ops: 300, Lanes: seed%2 == 0, Bulk: true})
		text := p.String()
		if again := Generate(seed, Profile{Ops: 300, Lanes: seed%2 == 0, Bulk: true}).String(); again != text {
			t.Fatalf("seed %d gives another program", seed)
		}
		read, err := Read(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if read.String() != text {
			t.Errorf("seed %d: read again, the program is another one", seed)
		}
	}
	for _, text := range []string{"{}", `{"options":{}}` + "\n{", `{"options":{}}` + "\n" + `{"did":"put"}`} {
		if _, err := Read(strings.NewReader(text)); err == nil {
			t.Errorf("%q is a program", text)
		}
	}
}
