package merge

// Sum adds up the counts of shards by distance (db.Runs.Distances): element d of the result is the sum of
// elements d. It has the length of the longest; nil is a shard that has not answered. The slice is the
// caller's.
func Sum(counts [][]int) []int {
	longest := 0
	for _, c := range counts {
		longest = max(longest, len(c))
	}
	sum := make([]int, longest)
	for _, c := range counts {
		for d, n := range c {
			sum[d] += n
		}
	}
	return sum
}
