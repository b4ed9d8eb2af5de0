// Package spaces gives items their codes. A Space is one revision of a space: a trained model, or in a
// codes-only collection the fact that items bring their codes. It is read from the store and never changes.
// Revisions of a space share the codes of label sets and differ in the projections.
//
// An item has one code, for searches in every modality, and one projection: the plain sum, which orders the
// items of one code as well as the weighted sum behind the code.
//
// The invariant: the codes of an item depend only on the Space, its vectors, the ids of its labels and the
// code that it brings. Every writer calls Encode or EncodeAll: a put, a bulk load, a builder, an update. So a
// verification that calls them again gets the same codes, bit for bit (db/internal/verify/codes.go;
// db/codes_test.go compares one item with many at a time).
//
// All methods of a Space are safe for concurrent use. An Encoder is scratch memory for one
// goroutine, taken from Space.Encoders. No goroutine outlives a call.
//
// It imports record and its imports, model for the mathematics, db/report for the public part of a revision's
// descriptor, and work to encode on several goroutines.
package spaces
