// Package metamorphic tries package db with random histories: operations of all
// kinds, with random options, against a model in memory that is made of maps and
// linear scans and knows nothing of rows, blocks, tables or postings.
//
// A Program is a list of operations and the options that the database is opened
// with. It is a text, one JSON object a line. Generate makes one from a seed; Run
// carries it out and returns a *Failure at the first operation whose outcome is not
// the one that the model says; Shrink takes away from a program what the failure does
// not need.
//
// Operations name what they work on: a collection, a key, a space by the operation that
// made it, a snapshot, a backup, a cursor. Where something of that name is not there,
// the model knows with which error the operation ends, or it is passed over. So every
// part of a program is a program, and a history that fails can be shrunk.
//
// What is known of the codes of a learned collection without trusting what stores them:
// items with the same known labels have the same code, for good; an item without has the
// one that Encode made of its vectors when it was written. With the codes that items
// have by that, every answer is compared with a scan of all items. Answers of different
// plans, page by page, and of many queries at once have to be the same to the last hit.
package metamorphic
