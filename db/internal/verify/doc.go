// Package verify reads every record in one snapshot of a store, and compares the records that repeat a fact,
// both ways.
//
// It never imports package state, because it must not trust the code that it checks. Package record reads
// records; package spaces reads models and makes their codes. Folder opens a store for reading only; Store
// checks an open one, while others read and write.
//
// Damage is a Finding, not an error. One damaged record is one finding, as far as possible: consequences of
// an unreadable record are left out. Two rules ensure that. Each key that cannot be read or decoded is noted
// (lose, skip). And before a record is reported as missing, or as contradicting another one, the other one
// must not be among the noted keys (lost).
//
// Store has the order of the checks: tables, the database, the catalogue, then each collection with its keys,
// items, features and spaces, and last the keys that belong to none of these.
//
// There are three ways to compare. What primary and derived records say about many rows are two streams of
// facts, whose sums have to be equal (compare). Rows that two kinds of records have are two bitmaps
// (sameRows). And with Options.Deep the one writer of codes, projections and statistics makes them again.
//
// Compared records, both ways unless one way is named:
//
//	descriptors of collections      names of collections
//	live rows                       items; keys of rows; the number of items in the counters
//	keys of rows                    rows of keys
//	rows of each modality           feature records
//	labels of items                 rows of each label
//	values in items                 rows of values of fields
//	codes of rows                   rows of codes
//	codes                           postings of all substrings; codes differ from each other
//	items that should have a code   codes of rows (that way only)
//	codes made of features          projections (that way only)
//	lessons                         rows that the updater has not seen: none is both
//	counters of a space             numbers of codes, of rows with codes, of lessons
//	marker and side file            format and commits of the store
//
// A verification runs in the goroutine of its caller, with helpers that it waits for.
//
// db/verify_damage_test.go damages each kind of record; db/verify_test.go expects nothing.
package verify
