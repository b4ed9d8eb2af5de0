package parquet_test

import (
	"fmt"
	"log"

	"github.com/fddhdb/fddhdb/files/parquet"
)

func Example() {
	r, err := parquet.OpenVectors("testdata/polars.parquet:image")
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	x := make([]float32, r.Cols)
	if err := r.Next(x); err != nil {
		log.Fatal(err)
	}
	fmt.Println(r.Rows, "rows, the first of them", x)
	// Output: 12 rows, the first of them [1 -0 0.001]
}
