// Package matrix has what the formats of files share: the bytes of a file (Source), numbers of all types
// (Type), runs and rows of them (Run, Dense), sparse vectors (Sparse), and errors with a place (Error).
//
// Vectors is the one reader of vectors. A format describes its matrix and gives one function that reads the
// next row (Format); what every reader has to do, as to count rows, keep the final error and sort sparse
// rows, is here.
//
// Memory is bounded by the bytes that are there: a size is checked against them before anything is allocated.
package matrix
