package spool

import "strings"

// A keyArena copies keys side by side into large pieces of memory. Millions of keys cost fewer
// allocations that way, and none of them keeps a larger string of the user alive.
type keyArena struct{ room strings.Builder }

// add returns a copy of a key.
func (a *keyArena) add(key string) string {
	if key == "" {
		return ""
	}
	if a.room.Cap()-a.room.Len() < len(key) {
		a.room = strings.Builder{}
		a.room.Grow(1 << 16)
	}
	from := a.room.Len()
	a.room.WriteString(key)
	return a.room.String()[from:]
}
