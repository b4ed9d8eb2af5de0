package mih_test

import (
	"context"
	"fmt"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/mih"
)

func Example() {
	w := mih.NewWriter(8, 0)
	for row, c := range []codec.Code{{0b0000}, {0b0001}, {0b0001}, {0b1111}} {
		n, _, err := w.Number(c)
		if err != nil {
			panic(err)
		}
		w.Add(n, uint32(row))
	}
	t := w.Publish()
	s := mih.NewScan(t)

	within, _ := s.Radius(context.Background(), codec.Code{0b0011}, 2, nil)
	for _, m := range within {
		for row := range t.Rows(m.Code).All() {
			fmt.Println("row", row, "at distance", m.Distance)
		}
	}
	// Output:
	// row 1 at distance 1
	// row 2 at distance 1
	// row 0 at distance 2
	// row 3 at distance 2
}
