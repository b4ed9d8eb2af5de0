// Package orders measures the orders of answers (search --rerank) as users get them, on sets of
// files:
//
//	experiments orders [--seeds 3] [--bits 64] SET...
//
// SET is a folder with train_NAME.npy for each modality and train_labels.npy.
// experiments makeset writes such folders, and `fddhdb export` can. Queries are
// query_NAME.npy and query_labels.npy; without these files a sixth of the items, drawn
// with each seed. Items are stored in an order drawn with the seed, so that an order by
// age is random. Training has its defaults. There are three cases:
//
//   - labelled: all items have labels;
//   - unlabelled: training has seen one half of the items, with labels; the other half
//     came without labels, and only that half is searched;
//   - mixed: the same database, all of which is searched.
//
// "itself" is asked of items that are searched: how far ahead the item comes of which the query is
// a vector, as the mean of 1/rank.
//
// mAP is computed over the whole answer, P@10 and P@50 over its beginning, with at most
// --queries queries; all are means over the seeds. +- is the standard deviation, over
// the seeds, of the difference in mAP between asymmetric and projection. The time is
// the median of a search for 10 by one goroutine, in microseconds.
//
// The package imports package db and calls it as a program of a user does. TestJudge
// proves the figures of one answer, TestEvaluate those of the cases.
package orders
