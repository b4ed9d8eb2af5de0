// Orders measures the orders of answers (search --rerank) as a user gets them, on sets
// of files:
//
//	cd internal/measure
//	go run ./orders [-seeds 3] [-bits 64] SET...
//
// SET is a folder with train_NAME.npy for each modality and train_labels.npy, such as
// internal/synth/makeset writes and `fddhdb export` can; queries are query_NAME.npy and
// query_labels.npy, or, where there are none, a sixth of the items, drawn with each
// seed. Items are stored in an order drawn with the seed, so that what goes by age is
// random. Training has its defaults. There are three cases:
//
//   - labelled: all items have labels;
//   - unlabelled: training has seen one half of the items, with labels; the other half
//     came without, and only it is searched;
//   - mixed: the same database, all of which is searched.
//
// mAP is that of the whole answer, P@10 and P@50 that of its beginning, by all queries
// up to -queries, means over the seeds; +- is the standard deviation over the seeds of
// the difference of asymmetric and projection, in mAP. The time is the median of a
// search for 10 by one goroutine, in microseconds.
package main
