// Package codesets makes the sets of binary codes that searches are measured on,
// and queries for them: seeded, the same on every machine, for any length of code.
//
// The sets differ in what makes an index fast or slow:
//
//   - Uniform: every bit is a coin toss. Nothing is near anything; the substrings
//     of the codes fill their tables evenly.
//   - Clustered: one centre for every 50 items (20,000 for a million), chosen by
//     Zipf weights 1/rank, each bit of an item differing from the centre's with
//     probability .05. The largest cluster has about a tenth of a million items.
//   - Learned: what training on labels leaves. 2,000 centres, chosen by the milder
//     weights 1/sqrt(rank), however many items there are; four fifths of the items
//     are their centre, of the other fifth each bit differs with probability .03.
//     Few codes are distinct and some own thousands of items.
//   - Projected: signs of random projections of real vectors, as LSH makes them.
//     An item is 24 independent, about Gaussian factors whose variances fall as
//     .85^f (as many even ones as 12 would do the same), bit j the sign of its
//     inner product with a Gaussian direction plus noise of a twentieth of the
//     variance. Bits are balanced and correlated; neighbours are near, and the
//     substrings fill their tables unevenly.
//
// Every item is drawn from a stream of random numbers of its own, so that codes
// are made in parallel and any of them alone. But for Clustered, whose centres
// grow in number, a smaller set is the beginning of a larger one.
package codesets
