// Package makeset writes a generated set of pairs as files that fddhdb import and the experiments
// read: train_image.npy, train_text.npy, train_labels.npy, and query_image.npy,
// query_text.npy, query_labels.npy.
//
//	experiments makeset DIR
//	experiments makeset --set multilabel --items 4000 --queries 400 DIR
//	experiments makeset --set pairs --items 1000000 --parts 16 DIR
//
// The sets are
//
//   - nuswide: of the shape of NUS-WIDE, with 500-d pictures, 1,000-d texts, and 10 labels
//     that go together or avoid each other; see synth.NUSWide.
//
//   - multilabel: 24 labels, drawn independently, one to four for an item. The vectors of
//     64 and 48 dimensions are sums of the labels' centres and noise; see synth.Pairs.
//     There are thousands of label sets, and so of codes.
//
//   - pairs: 20 labels, one for an item, with two vectors of 128 dimensions; imports and
//     backups are measured with it. Making a million items takes 1.2 GB of memory.
//
//   - tail: 20 labels, one for an item; the most frequent has 300 times as many items as the rarest; see
//     synth.Unbalanced.
//
//   - weak: pairs with three times the noise in the pictures.
//
//   - embeddings: 384-d pictures alone, without labels, like those of a neural encoder; see
//     synth.Embeddings.
//
// The package imports synth and files. Equal arguments give equal files.
package makeset
