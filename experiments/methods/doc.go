// Package methods has the published methods of cross-modal hashing, and measures them side by side with FDDH.
//
// A [Method] learns codes of training items and, for each modality, a projection whose signs are the code of
// any other vector. A file has one method, or a few that share steps, with papers and equations. Matrices
// have items as rows: n items, q bits, c labels. B are codes of +-1 (n x q), Y labels of 0 and 1 (n x c), G
// is Y with rows of length 1, X_t are the vectors of modality t, and phi_t what a method's map makes of them.
// The authors of each method have chosen its settings.
//
// Equal data and options give equal models on one machine. Goroutines may share a Method.
package methods
