// Package record is what a database stores: a type for each kind of record, functions that
// read one through a pebble.Reader, and functions that write one.
//
// All of it are functions of bytes and a reader. There is no goroutine here, no lock and no
// clock, so that whoever reads a record, a search, a verification or a repair, reads it alike.
package record
