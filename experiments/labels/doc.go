// Package labels measures collections whose items get labels later: codes learned without labels against
// FDDH learned from a share of the labels, on sets of files (package sets):
//
//	experiments labels [--seeds 3] [--bits 64] [--shares 1,5,10,25,100] SET...
//
// For each seed it stores all items of a set without labels, in an order drawn with the seed, and
// trains as `fddhdb train` does: that is the row "0 %". Then a share of the items, drawn with the
// seed, gets its labels, and the same training learns FDDH from these in a space beside the first,
// in which all items have codes. A larger share has the items of the smaller ones, and others.
// The columns, means over the seeds, are of all queries and all items:
//
//   - mAP A to B: as `fddhdb eval --truth` gives it for the labels of all items, hidden ones too, by
//     distance;
//   - mAP A to A: of the whole answer of `fddhdb search --from A --to A`, which in a space without
//     labels is by the vectors of A;
//   - neighbours, A: the share of the ten items with the nearest vectors of A that is among the first 100 by
//     the distance of codes, as `fddhdb eval --truth neighbours` gives it.
//
// A query that a space refuses, as it is far from all labelled items, counts 0. +- is the largest
// standard deviation over the seeds of any column of the row.
package labels
