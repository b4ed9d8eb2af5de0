// Package writes measures synced writes beside the storage engine alone: single items by Put,
// and the same bytes by a batch of Pebble, from several goroutines at a time:
//
//	experiments writes
//	experiments writes --goroutines 16 --payload 1000 --rounds 9
//
// Both sides run in turns, each on an empty store in a folder of its own, for --for. An
// item is a key, a code and a payload. On Pebble's side each goroutine commits its own
// batch, of the key with code and payload as its value; Pebble lets the goroutines share
// syncs. A row of the table has the medians of --rounds runs, and the median of the
// ratios of the runs that were made after one another. Over 1, Put is the faster one.
package writes
