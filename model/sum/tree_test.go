package sum

import (
	"fmt"
	"slices"
	"testing"

	"github.com/fddhdb/fddhdb/model/internal/wire"
)

// The tree is the one that LeafItems describes: sums of strings that say what was added to what.
func TestTree(t *testing.T) {
	for _, leaves := range []int{1, 2, 15, 16, 17, 32, 33, 255, 256, 257, 300, 4096, 4097} {
		tr := &tree{}
		for i := range leaves {
			tr.add(0, &terms{fmt.Sprint(i)})
		}
		nodes := make([]string, leaves)
		for i := range nodes {
			nodes[i] = fmt.Sprint(i)
		}
		up := 0
		for ; len(nodes) > 1; up++ {
			var parents []string
			for c := range slices.Chunk(nodes, FanOut) {
				sum := c[0]
				for _, s := range c[1:] {
					sum = "(" + sum + "+" + s + ")"
				}
				parents = append(parents, sum)
			}
			nodes = parents
		}
		if got := tr.root().(*terms).text; got != nodes[0] {
			t.Errorf("%d leaves: another tree", leaves)
		}
		if got := Levels(leaves * LeafItems); got != up {
			t.Errorf("%d leaves: %d levels, not %d", leaves, got, up)
		}
	}
}

// terms are sums that are text.
type terms struct{ text string }

func (s *terms) add(*Block) error      { return nil }
func (s *terms) merge(o Sums)          { s.text = "(" + s.text + "+" + o.(*terms).text + ")" }
func (s *terms) reset()                {}
func (s *terms) appendTo(*wire.Writer) {}
func (s *terms) readFrom(*wire.Reader) {}
