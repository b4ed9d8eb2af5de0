// Package metamorphic tests package db with random histories: operations of all kinds, with
// random options, against a model in memory. The model consists of maps and linear scans.
// It knows nothing of rows, blocks, tables or postings.
//
// Package program has the language: a program is a list of operations, and the options to open the
// database with. Generate makes one from a seed. Run runs it, and returns a *Failure at the first operation
// whose outcome differs from the model's. A program that fails is shrunk to what the failure needs.
//
// Operations name what they work on: a collection, a key, a space (by the operation that
// made it), a snapshot, a backup, a cursor. If nothing has that name, the model predicts
// the error of the operation, or the operation is passed over. So every part of a program
// is a program, and a history that fails can be shrunk.
//
// A history may continue with another database than the one that it began with: a restored backup, a
// checkpoint, or a database that was repaired after damage. The damage removes only what other records tell,
// too. The present database stays beside it, and the history may go back to it. A copy may hold one
// collection, or be index-only; it must answer as the original did. A database that is opened read-only, or
// is index-only, must refuse every change and show everything.
//
// Marks come and go with batches. An import stores a few parts, each with a mark, and goes on later
// where the mark says: with whatever came between, a crash or an older backup, no part is missing.
//
// A collection that is altered has more modalities and fields from then on. Snapshots keep those
// of their moment, and models the modalities that they know.
//
// The codes of a learned collection are known without trusting what stores them. Items with
// the same known labels have the same code, for good. An item without such labels has the
// code that Encode made of its vectors when it was written. With these codes, every answer
// is compared with a scan of all items. Answers of different plans, page by page, and of
// many queries at once have to be the same to the last hit.
//
// An answer by vectors is compared with a scan, too, to the last bit of each similarity. One that an
// index of vectors finds may lack items, and has the others in the same order. How much is missing
// is added up, and has a limit. Tests make indexes work on few items (internal/cells); they
// are behind the items, and catch up in the background, across crashes, copies and repairs.
//
// # Imports and invariants
//
// The package imports db, its backups, codec, model, oracle and Pebble (to damage the
// store). Only a program's lanes run in goroutines; they own their keys, and what they
// share has atomic counters or the lock of a memory file system.
//
// TestHistories and TestConcurrentHistories run programs. TestModelOfItems, TestExpr,
// TestForkedWorldsAreApart, TestPartsOfWorlds, TestAlterable and TestAnswersThatLackItems test the
// model itself, TestProgramsAreTheirText and TestShrink the programs.
package metamorphic
