package command

import (
	"iter"

	"github.com/fddhdb/fddhdb/db"
)

// aheadItems and aheadBytes are the approximate size of a batch of ahead.
const (
	aheadItems = 256
	aheadBytes = 1 << 20
)

// ahead yields the pairs of items. Another goroutine reads ahead, and a few batches are
// in memory. The goroutine ends before ahead returns.
func ahead(items iter.Seq2[*db.Item, error]) iter.Seq2[*db.Item, error] {
	type pair struct {
		item *db.Item
		err  error
	}
	return func(yield func(*db.Item, error) bool) {
		batches, stop := make(chan []pair, 1), make(chan struct{})
		go func() {
			defer close(batches)
			var batch []pair
			bytes := 0
			send := func() bool {
				select {
				case batches <- batch:
					batch, bytes = nil, 0
					return true
				case <-stop:
					return false
				}
			}
			for it, err := range items {
				batch = append(batch, pair{it, err})
				if err == nil {
					bytes += itemBytes(it)
				}
				if (len(batch) == aheadItems || bytes >= aheadBytes) && !send() {
					return
				}
			}
			send()
		}()
		defer func() {
			close(stop)
			for range batches { // wait until nothing is read any more
			}
		}()
		for batch := range batches {
			for _, p := range batch {
				if !yield(p.item, p.err) {
					return
				}
			}
		}
	}
}

// itemBytes returns the approximate memory of an item.
func itemBytes(it *db.Item) int {
	n := len(it.Payload)
	for _, x := range it.Vectors {
		n += 4 * len(x)
	}
	for _, x := range it.Sparse {
		n += 8 * len(x.Value)
	}
	return n
}
