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
// A history may go on with another database than the one that it began with: what has been
// restored of a backup, a checkpoint, what a repair has made after damage that takes
// nothing away which nothing else says, and what has been upgraded from the first format.
// The present one is left beside it, and may be gone back to. A copy may be of one
// collection, or index-only; it must answer as the original did. What is opened for reading
// only, or index-only, must refuse every change and show everything.
//
// An import is staged in a folder, over as many operations, crashes and openings as come
// between, and seen by nobody: of what was put since it was gone on with last a crash leaves
// the first so many rows, of what was put before all. It is committed whole, also by a crash
// in the middle of that, and then says that it is. No copy holds what is staged, and a repair
// removes it. A collection that is altered has more modalities and fields from then on;
// snapshots go on with those of their moment, and models with the modalities they know.
//
// What is known of the codes of a learned collection without trusting what stores them:
// items with the same known labels have the same code, for good; an item without has the
// one that Encode made of its vectors when it was written. With the codes that items
// have by that, every answer is compared with a scan of all items. Answers of different
// plans, page by page, and of many queries at once have to be the same to the last hit.
package metamorphic
