// Package dense computes the matrix products of training and encoding, on dense
// row-major matrices. MulNT computes X Y' of vectors and anchors in float32, and
// Gaussian makes the features of an RBF map from it. AddGram and AddTN compute the sums
// A += phi'phi and B += H'phi in float64. Cholesky and CholeskySolve compute the
// solution P of P (A + gamma I) = B. MulNT computes the projections phi P'. SparseMulNT
// multiplies bags of words.
//
// The inner loops are in assembly for AVX-512 and AVX2 with FMA (amd64) and for NEON
// (arm64), and in Go for all other machines. The fastest set that the machine can run
// is chosen when the program starts. On one core of a Zen 4 EPYC they do 100 GFLOP/s in
// float32 and 48 in float64 (go test -bench 'MulNT|Add' -cpu 1), like OpenBLAS 0.3.21.
//
// # Determinism
//
// An element of a product is computed by one goroutine, in one order of its terms: that
// of the definition. It depends on its own row and column alone: not on the number of
// workers, on how a caller cuts the rows into calls, on where the slices are in memory,
// or on the blocking for the caches. So an item has the same features and projections,
// to the last bit, alone and in a batch. Cholesky and CholeskySolve consist of such
// products. All sets agree with one another to the last bit too: each multiplication is
// fused with its addition, which the generic set computes with more digits.
// TestMulNTOfBlocks, TestGramOfParts and TestGaussianAlone prove this for blocks and
// rows, TestSetsAgree for the sets.
//
// A sum of n terms in one order has a relative error of at most n times the
// rounding of one operation: n 2^-24 sum|x_i y_i| for the float32 products, and
// typically sqrt(n) times.
//
// # Caveats
//
// Functions panic if shapes do not fit or slices are too short: that is an error of the
// program. They do not check for NaN and infinities, which go where arithmetic takes
// them. Goroutines may share all operands that are only read. Zero rows or columns are
// allowed everywhere. No kernel reads or writes beyond its slices; the tests named
// StaysInside prove that with pages that cannot be touched.
//
// # Imports
//
// Of this module the package imports internal/simd alone.
package dense
