package mih

// Rollback makes the table of the writer what t shows, which is what the writer
// has published last: everything since is forgotten, as if it had not been. Time is
// that of putting the codes of the tail into a hash table.
func (w *Writer) Rollback(t *Table) {
	// Pages changed since are copies, and what the tail has grown by nobody has seen.
	w.t = *t
	w.epoch++
	w.fresh = 0
	w.rehash()
}
