// Package synth generates the data of tests and measurements: seeded, so that equal
// arguments give equal data.
//
// # Items
//
// Pairs makes small, labelled, paired items of several modalities. Each class has one
// centre in each modality. An item draws its labels, and each of its vectors is the sum
// of its labels' centres plus Gaussian noise. So the modalities share nothing but the
// labels, as a picture and its caption do. With little noise the classes separate and
// retrieval is nearly perfect; with much it fails gracefully.
//
// Embeddings makes vectors without labels, like those of a neural encoder, and PairedEmbeddings items
// with two of them.
//
// ManyLabels makes items with many labels, which come in families. NUSWide makes items
// of the shape of the set NUS-WIDE, any number of them.
//
// # Codes
//
// Codes makes sets of binary codes of any length, and CodeQueries queries for them.
// The sets differ in what makes an index fast or slow:
//
//   - Uniform: every bit is a coin toss. Nothing is near anything; the substrings
//     of the codes fill their tables evenly.
//   - Clustered: one centre for every 50 items (20,000 for a million), chosen by
//     Zipf weights 1/rank, each bit of an item differing from the centre's with
//     probability .05. The largest cluster has about a tenth of a million items.
//   - Learned: codes as training on labels makes them. 2,000 centres, chosen by the
//     milder weights 1/sqrt(rank), however many items there are; four fifths of the
//     items are their centre, of the other fifth each bit differs with probability .03.
//     Few codes are distinct and some own thousands of items.
//   - Projected: signs of random projections of real vectors, as LSH makes them.
//     An item is 24 independent, about Gaussian factors whose variances fall as
//     .85^f (as many even ones as 12 would do the same), bit j the sign of its
//     inner product with a Gaussian direction plus noise of a twentieth of the
//     variance. Bits are balanced and correlated; neighbours are near, and the
//     substrings fill their tables unevenly.
//
// Every item of NUSWide and Embeddings and every code has a stream of random numbers of its own, so
// that any of them can be made alone, and codes are made in parallel. But for
// Clustered, whose centres grow in number, a smaller set of codes is the beginning of a
// larger one.
//
// # Files
//
// go -C experiments run . makeset writes items as the files that fddhdb import reads.
//
// # Imports and invariants
//
// The package imports codec alone of this module, so that the tests of every package
// but codec can use it. Codes are the same on every machine and in every version, or
// figures could not be compared: TestCodesArePinned. Items are the same on one architecture:
// TestPairs, TestManyLabels, TestNUSWideIsDetermined and TestEmbeddings.
package synth
