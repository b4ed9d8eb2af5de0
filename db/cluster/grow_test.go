package cluster_test

import (
	"fmt"
	"testing"

	"github.com/fddhdb/fddhdb/db/cluster"
)

func TestGrowSmoke(t *testing.T) {
	h := build(t, 3, 3, 2, 2)
	c := h.connect()
	codesOf(t, c)
	putSome(t, c, 0, 300)
	for want := 4; want <= 8; want *= 2 {
		err := c.Grow(t.Context(), cluster.GrowOptions{Progress: func(p cluster.GrowProgress) { t.Log(p) }})
		if err != nil {
			t.Fatal(err)
		}
		if n := count(t, c); n != 300 || c.Shards() != want {
			t.Fatal(n, c.Shards())
		}
		putSome(t, c, 100, 300)
		h.inStep(2, 300)
		fmt.Println(c.Placement())
	}
}
