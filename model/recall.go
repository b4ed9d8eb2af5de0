package model

// AddRecall adds to dst[w] the share of the items of truth, by their places in distances, that is
// among the first windows[w] items by distance, from 0 to bits. Items at one distance come in random
// order, and the share is the expected one. It costs some nanoseconds an item. truth is not empty.
func AddRecall(dst []float64, bits int, distances []uint16, truth []int32, windows []int) {
	count := make([]int, bits+2) // count[d+1] items are at distance d
	for _, d := range distances {
		count[d+1]++
	}
	for d := 1; d < len(count); d++ {
		count[d] += count[d-1] // count[d] items are nearer than d
	}
	for w, window := range windows {
		found := 0.0
		for _, place := range truth {
			d := distances[place]
			nearer, ties := count[d], count[d+1]-count[d]
			found += min(max(float64(window-nearer)/float64(ties), 0), 1)
		}
		dst[w] += found / float64(len(truth))
	}
}
