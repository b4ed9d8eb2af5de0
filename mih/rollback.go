package mih

// Rollback returns the writer to t, the table that it has published last. All changes
// since then are forgotten. It takes the time of putting the codes of the tail into a
// hash table.
func (w *Writer) Rollback(t *Table) {
	// Pages changed since then are copies, and no reader has seen the growth of the
	// tail.
	w.t = *t
	w.epoch++
	w.fresh = 0
	w.rehash()
}
