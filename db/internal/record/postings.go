package record

import "github.com/fddhdb/fddhdb/mih"

// Postings calls f with the postings of the codes of a table whose numbers are first to end-1, for the
// substrings from to to-1 of Split, in the order of their keys: each has the numbers of the codes with one
// value of a substring, ascending. Key and numbers are valid until f returns; an error of f ends the calls,
// and is returned. It sorts the codes by value with a counting sort, in 6 bytes a code and 4 bytes a value,
// at most 65,536 values.
func (k CodeKeys) Postings(table *mih.Table, first, end uint32, from, to int,
	f func(key []byte, numbers []uint32) error) error {
	split, live := Split(k.Bits), make([]uint32, 0, end-first)
	for n := first; n < end; n++ {
		if table.Cardinality(n) > 0 {
			live = append(live, n)
		}
	}
	values, sorted := make([]uint16, len(live)), make([]uint32, len(live))
	var key []byte
	for j := from; j < to; j++ {
		// ends[v+1] counts the codes with value v, then ends[v] is where they begin in sorted, and at last
		// where they end.
		ends := make([]uint32, 1<<split.Width(j)+1)
		for i, n := range live {
			values[i] = uint16(split.Of(table.Code(n), j))
			ends[int(values[i])+1]++
		}
		for v := range len(ends) - 1 {
			ends[v+1] += ends[v]
		}
		for i, v := range values {
			sorted[ends[v]] = live[i]
			ends[v]++
		}
		begin := uint32(0)
		for v, end := range ends[:len(ends)-1] {
			if begin == end {
				continue
			}
			key = k.AppendPosting(key[:0], uint16(j), uint32(v))
			if err := f(key, sorted[begin:end]); err != nil {
				return err
			}
			begin = end
		}
	}
	return nil
}
