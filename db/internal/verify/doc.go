// Package verify reads one snapshot of a store, every record of it, and compares what stands in
// more than one place, both ways.
//
// It never imports package state: it must not trust what it checks. Records are read by package
// record, models and the codes that they give by package spaces. Folder opens a store for
// reading only; Store looks at one that is open, while others read and write.
//
// What is wrong is a Finding, and no error. One damaged record is one finding, as far as
// possible: what follows from something that cannot be read is left out. Two rules see to
// that. Whatever cannot be read or decoded is noted (lose, skip); and before something is
// reported as missing, or as contradicting a record, that record must not be among the noted
// ones (missing, lost, untold).
//
// The order of the checks is that of Store: tables, the database, the catalogue, then each
// collection with its keys, items, features and spaces, and last the keys that belong to none
// of these. A check goes through its records once, by ascending key, and keeps what the other side of
// a comparison needs: bitmaps of rows, hashes of keys, codes. db.Verify says how much memory
// that takes.
//
// What is compared with what; both ways unless one is named:
//
//	descriptors of collections      names of collections
//	live rows                       items; keys of rows; the number of items in the counters
//	keys of rows                    rows of keys
//	rows of each modality           feature records
//	rows of each label              labels of items
//	rows of values of fields        values in items
//	codes of rows                   rows of codes
//	codes                           postings of all substrings; codes differ from each other
//	items that should have a code   codes of rows (that way only)
//	codes made of features          projections (that way only)
//	lessons                         rows that the updater has not seen: none is both
//	counters of a space             numbers of codes, of rows with codes, of lessons
//	marker and side file            format and commits of the store
//
// and with Options.Deep
//
//	codes and projections           what the model makes of labels and features
//	statistics                      sum of lessons and retractions
//
// Verifiers are embedded in each other: verifier, collectionVerifier, spaceVerifier,
// codeVerifier. Each has its own bad, missing and about, which say in findings what it looks
// at. A verification runs in the goroutine of its caller, with helpers that it waits for.
//
// db/verify_damage_test.go damages each kind of record; db/verify_test.go expects nothing.
package verify
