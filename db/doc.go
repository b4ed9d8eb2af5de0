// Package db is fddhdb, an embedded database for cross-modal retrieval by
// learned hash codes: one folder, no server, no cgo.
//
// Items live in collections. An item of a learned collection has a key, feature
// vectors of one or more kinds (modalities: of its picture, of its text),
// labels, typed fields and a payload; any of these may be missing. Training
// learns from the labelled items binary codes that make the modalities
// comparable (FDDH; see package model), and gives every item one. A search
// encodes a vector of any modality and finds the items whose codes are nearest
// in Hamming distance, exactly. A collection that is not trained needs no labels: its
// searches compare vectors, exactly or by an index of vectors (Collection.IndexVectors) with
// the recall that you ask for.
//
//	d, err := db.Open("photos.fddhdb", nil)
//	c, err := d.CreateCollection(ctx, "main", db.Schema{
//		Modalities: []db.Modality{{Name: "image", Dim: 128}, {Name: "text", Dim: 10}},
//	})
//	_, err = c.Put(ctx, &db.Item{Key: "cat.jpg", Labels: []string{"cat"}, Vectors: ...})
//	t, err := c.Train(ctx, db.TrainOptions{})
//	r, err := c.Search(ctx, db.Query{From: "text", To: "image", Vector: words, K: 10})
//
// An item has one code, which searches from any modality to any other one compare.
//
// When items get labels after the first training, Train again with TrainOptions.Activate. Searches use the
// new codes as soon as every item has one, also those that came meanwhile. Update instead teaches the labels
// to a model that was learned from labels.
//
// Query.Where filters the items of a search by labels, modalities and fields, fast where fields
// are indexed. Items, Count, Sample and DeleteWhere take a filter without a search. Items
// yields items in the order in which they came, and Sample some at random. Keys yields the keys with a
// prefix, in order.
//
// Modalities and fields can be added later (Collection.Alter).
//
// A codes-only collection (Schema.Bits) has no model: its items bring their own
// codes, perceptual hashes or binarised embeddings, and are searched in the
// same way.
//
// # Concurrency
//
// A DB and everything that it hands out, except Batch, is safe for concurrent
// use. One committer groups waiting writes into one synced commit. A read holds one
// immutable view of the whole database, and waits neither for writers nor for training. After
// opening, a goroutine loads the codes into memory; until then searches read the store, and
// writes, Train, Evaluate and Codes wait. One process has a database open at a time, or
// several open it for reading only (Options.ReadOnly).
//
// For a write that depends on an earlier read use PutIf, or Expect in a Batch: it is
// committed only if the item is still as you have read it.
//
// A context must not be nil: a call that uses it panics, or fails. A program that recovers this panic,
// or one of the body of a loop over Items or the like, can go on and close the database.
//
// # Durability
//
// When a write returns, it is on stable storage, unless Options.NoSync. A Batch
// is applied whole or not at all, over all its collections, codes included; so is
// a training. If a write to the log or the manifest fails, the database refuses
// further writes with ErrFailed and goes on answering reads; closing and opening
// it recovers every acknowledged write. The fate of the write that failed is
// unknown until then. Damage at the end of the log costs the latest commits, whole: Open
// succeeds then, and Recovery tells which are missing. Verify finds damage, and Repair
// saves what can be saved.
//
// DB.Backup makes a backup of a database that is in use, and Restore a database of a
// backup; see package backup.
//
// # What goes on
//
// Stats has figures about a database and its work; you can call it every second.
// Options.EventListener and Options.Logger hear of events: see package event. docs/OPERATIONS.md says what to
// watch.
//
// # Copies
//
// DB.Checkpoint writes the database as it is now, or one collection of it, into another
// folder, which another process may open while this one goes on. An index-only copy
// lacks the vectors of items: it takes a fraction of the space, answers searches as
// the original did in all orders that compare no vectors, and cannot be written to.
//
// A disk that is nearly full costs writes, with ErrDiskFull, and nothing else: a reserve is
// kept free (Options.ReserveBytes), deletions and drops may use it, and when there
// is room again writes go on.
//
// # Limits
//
// Constants bound what an item, a batch and a schema may hold (MaxKeyBytes and the others);
// an item beyond them is an ErrInvalid, and nothing is stored. Expressions have 64 KiB at most,
// nested 100 deep, and 1 MiB of arguments. Numbers in queries may be of any size: a search
// takes some 16 bytes of memory for each distinct code (24 for RerankAsymmetric), and some 100
// bytes and the key for each item of its answer. A damaged or hostile database cannot make
// it allocate more than it has bytes.
//
// Store more items than fit into memory in several batches: commit each when Batch.Full
// reports true, with a Batch.Mark that says how far you are.
//
// # Caveats
//
// Codes of different code spaces cannot be compared. Keep no codes outside the database: they are worthless
// once another space is active.
//
// All distinct codes and the row numbers of all items are in memory. A search looks codes up
// in tables, or reads all distinct codes if it expects that to take less time: if there are
// few codes, or none is near the query. See package mih.
//
// Vectors are float32, dense or sparse (Modality.Sparse).
//
// Open fails if it cannot write the log that a crash has left into tables. It then leaves
// some waiting goroutines behind, with their memory.
//
// # For those who change it
//
// This package is the public API alone. A method checks its arguments, calls a package of db/internal, and
// reports events. No package of db/internal imports this one; shared types stand in db/event, db/fault and
// db/report. docs/DESIGN.md lists the goroutines of an open database; Open starts them, and Close ends them.
//
// TestMethodsThatAreGivenNothing calls every method with nothing, TestResultsAreJSON looks at
// every result, and the table "What always holds" of docs/DESIGN.md names the tests of the
// promises of this package.
package db
