// Package vectors compares searches for nearest neighbours of vectors without labels: fddhdb by
// an index of vectors beside other libraries, on the same generated vectors, by the
// cosine:
//
//	experiments vectors
//	experiments vectors --items 100000 --set tails --usearch /path/to/usearch
//	experiments vectors --items 1000000 --recalls .95,.98 --usearch /path/to/usearch
//
// The peers are coder/hnsw, a graph in Go; chromem-go, a scan in Go; and with --usearch
// USearch, a graph in C++, with vectors of float32 and of 8 bits a dimension. --usearch
// is a folder with usearch/index_dense.hpp, and with numkong/spatial.h for the fastest
// kernel of 8 bits, as version 2.25.3 of its source has them. A program on top of it
// (usearch/main.cpp) is compiled with $CXX, c++ or g++.
//
// Each side runs in a process of its own, so that the memory and the garbage collection
// of one are not those of another. Sides build one after the other. Then they search in
// turns, --rounds times each setting with all queries, by one thread, after a round that
// is not timed. Clocks stand around each search, inside the process.
//
// Found is the mean share of the k nearest items in answers. The nearest items come from
// a scan with float64 by this program. The search of fddhdb with 1 asked is exact: if it
// does not find all of them, the program fails. Import is the time until vectors are
// stored, durably; the peers have them in memory. Memory is the heap in use after a
// garbage collection, and what USearch says that it uses. Disk is the folder of the
// database.
//
// The second table has the time of fddhdb as a part of that of each peer, where the peer
// finds as much as fddhdb has found: under 1, fddhdb is the faster one. Between two of its
// settings a peer is taken to lie on a straight line; below all of them it has the time of
// its fastest; "-" says that it never finds so much.
package vectors
