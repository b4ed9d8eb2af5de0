// Package record is what a database stores: a type for each kind of record, functions that
// read one through a pebble.Reader, and functions that write one. What a transaction and a
// bulk load both store goes through a Writer.
//
// package codec has the bytes: keys, blocks, layers and entries. This package knows what they
// mean in a database: that a collection has a Descriptor, that an Item lies in several records,
// that codes are numbered and stand in blocks (CodeKeys, CodeBlocks), and which sets of rows
// an item is in (Terms). It has the one table of kinds (KindOf): what a record of each kind
// belongs to, whether a repair copies it or makes it again, and whether an index-only copy has
// it. TestKindsAreComplete compares the table with codec and with docs/FORMAT.md.
//
// Everything is a function of bytes and a reader. There is no goroutine here, no lock and no
// clock, and nothing is cached between calls, so that a search on a snapshot, the committer, a
// verification and a repair all read a record in the same way. Types with memory of their own
// (FeatureReader, CodeBlocks, ByBlock, Writer) belong to one goroutine; all others are plain values.
//
// Errors of reading are errors of db/fault: a record that is damaged, or missing where it must exist, gives
// an ErrCorrupt that names it; a failure of the disk does not. Errors of checking user input are ErrInvalid.
// db/golden_test.go pins the formats; db/fuzz_test.go feeds the decoders damaged bytes.
//
// It imports codec, model and mih for their types, db/fault, and of Pebble the reader and
// writer.
package record
