// Package matrix measures searches over the codes of package synth, beside a scan of all codes:
//
//	experiments matrix
//	experiments matrix --sets U --items 10000000 --radius 8,16 --tiers auto,fullscan,memory
//	experiments matrix --write --sets S --bits 128 --items 1000000 --dir /tmp
//
// It makes each set, imports it into a new database as fddhdb import does, searches it, prints a row for each
// search, and deletes the database. One goroutine searches. A tier is a plan of the database, or fullscan,
// the yardstick: every word of the codes of all items, one after the other. It finds rows, not keys. Tiers
// take turns, so that what else the machine does meets all of them. They have to find as much as each other.
package matrix
