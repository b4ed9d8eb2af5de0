// Package merge merges the answers of shards into one.
//
// A collection is divided into shards by the hash of the key (package db/shard), and each shard is a separate
// database with the same model. A client asks each shard for its first K hits with a cursor behind each
// (db.IncludeCursor), and Page merges them. The page ends behind some hit of each shard; its Cursor over
// shards says which. The next page asks each shard to continue at its part of the cursor.
//
//	page, at, err := merge.Page(answers, merge.Cursor{}, merge.Want{K: 10})
//	for err == nil && !at.Done() {
//		// ask each shard i that is not at.Ended(i) with After = at.After(i)
//		page, at, err = merge.Page(answers, at, merge.Want{K: 10})
//	}
//
// # The invariant
//
// Page only ever takes the first remaining hit of a shard. So the hits of each shard keep their order, a page
// ends behind a prefix of each shard's answer, and later pages merge the rest. Of two shards the hit that is
// first in the order of the answer comes first; ties go to the least key. So a page is a function of the
// answers alone: which shard answered first does not count. K hits of each shard are enough, because a page
// of K hits takes no more of any shard.
//
// # Exactness
//
// One database with the items of all shards would give the same distance and score in every position, and up
// to ties the same similarities and keys, except for:
//
//   - Codes with equal distance and score. Within a shard they come by the age of the code, which shards do
//     not share, and not by similarity. Scores are sums of real numbers, and hardly ever equal. Without a
//     projection there is no similarity, and such codes are a tie.
//   - Answers by vectors of the metric l2. Shards order by the distance, and a hit has 1 / (1 + d) as a
//     float32. Hits with equal similarities are a tie here.
//   - RerankAuto, which each shard decides for itself: see MismatchError.
//
// Ties are hits that are equal in the order of the answer. One database orders them by row, so its first K
// may have others of the last tie. A row (db.Hit.Row) has no meaning outside of its shard.
//
// Functions here change no arguments, hold no state and know no network. Goroutines may share all values.
package merge
