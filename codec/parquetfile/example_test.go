package parquetfile_test

import (
	"fmt"
	"log"

	"github.com/fddhdb/fddhdb/codec/parquetfile"
)

func Example() {
	r, err := parquetfile.OpenVectors("testdata/polars.parquet:image")
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	x := make([]float32, r.Cols())
	if err := r.Next(x); err != nil {
		log.Fatal(err)
	}
	fmt.Println(r.Rows(), "rows, the first of them", x)
	// Output: 12 rows, the first of them [1 -0 0.001]
}
