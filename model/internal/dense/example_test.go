package dense_test

import (
	"fmt"

	"github.com/fddhdb/fddhdb/model/internal/dense"
)

// The features of two vectors for three anchors, and their sums of products.
func Example() {
	anchors := dense.Of(3, 2, []float32{0, 0, 1, 0, 0, 1})
	norms := []float32{0, 1, 1}
	right := dense.Pack(anchors)

	x := dense.Of(2, 2, []float32{0, 0, 1, 1})
	phi := dense.Of(2, 3, make([]float32, 6))
	dense.MulNT(phi, x, right)
	for i, norm := range []float32{0, 2} {
		row := phi.Data[3*i : 3*i+3]
		dense.Gaussian(row, row, norm, norms, 1)
		fmt.Printf("%.3f\n", row)
	}

	a := dense.Of(3, 3, make([]float64, 9))
	dense.AddGram(a, phi, 2)
	fmt.Printf("%.3f\n", a.Data[3:5])
	// Output:
	// [1.000 0.368 0.368]
	// [0.135 0.368 0.368]
	// [0.418 0.271]
}
