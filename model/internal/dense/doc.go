// Package dense computes the products that training and encoding consist of, on
// dense row-major matrices: X Y' of vectors and anchors in float32 (MulNT), from
// which Gaussian makes the features of an RBF map, the sums A += phi'phi and
// B += H'phi in float64 (AddGram, AddTN), the solution P of P (A + gamma I) = B
// (Cholesky, CholeskySolve), and the projections phi P' (MulNT again). SparseMulNT
// multiplies bags of words.
//
// The inner loops are in assembly for AVX-512 and AVX2 with FMA (amd64) and for
// NEON (arm64), and in Go for all other machines; the fastest set that the machine
// can run is chosen when the program starts. On one core of a Zen 4 EPYC they do
// 100 GFLOP/s in float32 and 48 in float64 (go test -bench 'MulNT|Add' -cpu 1), as
// does OpenBLAS 0.3.21.
//
// # Determinism
//
// An element of a product is computed by one goroutine, in one order of its
// terms, that of the definition. It depends on its own row and column alone: not
// on the number of workers, on how a caller cuts the rows into calls, on where the
// slices are in memory, or on the blocking for the caches. So an item has the same
// features and projections, to the last bit, alone and in a batch. What Cholesky
// and CholeskySolve compute consists of such products. The sets in
// assembly agree with one another to the last bit too. The generic one, which
// does not fuse multiplications with additions, does not agree with them.
// TestMulNTOfBlocks, TestGramOfParts and TestGaussianAlone prove it for blocks and
// rows, TestSetsAgree for the sets.
//
// A sum of n terms in one order has a relative error of at most n times the
// rounding of one operation: n 2^-24 sum|x_i y_i| for the float32 products, and
// typically sqrt(n) times.
//
// # Caveats
//
// Functions panic when shapes do not fit or slices are too short: that is an error
// of the program. They do not look for NaN and infinities, which go where
// arithmetic takes them. Goroutines may share all operands that are read. Zero
// rows or columns are allowed everywhere. No kernel reads or writes beyond its
// slices, which the tests named StaysInside prove with pages that cannot be touched.
//
// # Imports
//
// Nothing of this module; golang.org/x/sys/cpu tells what the machine can run.
package dense
