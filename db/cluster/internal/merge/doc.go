// Package merge makes one answer of the answers of shards.
//
// A collection is cut into shards by the hash of the key (package db/shard), and each shard is a database
// of its own with the same model. A client asks each shard for its first K hits with a cursor behind each
// (db.Query.Cursors), and Page merges them. The page says behind which hit of each shard it ends, as a
// Cursor over shards; the next page asks each shard for what follows its part of the cursor.
//
//	page, at, err := merge.Page(answers, merge.Cursor{}, merge.Want{K: 10})
//	for err == nil && !at.Done() {
//		// ask each shard i that is not at.Ended(i) with After = at.After(i)
//		page, at, err = merge.Page(answers, at, merge.Want{K: 10})
//	}
//
// # The invariant
//
// Page only ever takes the first of the hits that a shard has left. So the hits of each shard come in the
// order that the shard gave them, a page ends behind a prefix of each shard's answer, and what follows is
// the merge of what is left. Of two shards the hit that is first in the order of the answer comes first;
// of hits that are equal in it, the least key. That makes a page a function of the answers alone: which
// shard was the first to answer does not count. K hits of each shard are enough, as a page of K hits takes
// no more of any shard.
//
// # Exactness
//
// One database with the items of all shards would give the same distance and score in every position.
// Similarities are the same, too, and keys are, up to ties, but for:
//
//   - Codes with equal distance and score. Within a shard they come by the age of the code, which shards
//     do not share, and not by similarity. Scores are sums of real numbers, and hardly ever equal. Without
//     a projection there is no similarity, and such codes are a tie.
//   - Answers by vectors of the metric l2. Shards order by the distance, and a hit has 1 / (1 + d) as a
//     float32. Hits whose similarities are equal are a tie here.
//   - RerankAuto, which each shard decides for itself: see MismatchError.
//
// Ties are hits that are equal in the order of the answer. One database orders them by row, and its first
// K may have others of the last tie.
//
// Rows (db.Hit.Row) are those of the shard, and say nothing outside of it.
//
// Functions here change none of their arguments, hold no state and know no network. Goroutines may share
// all values.
package merge
