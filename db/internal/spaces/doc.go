// Package spaces is what gives items their codes. A Space is one revision of a space: a
// trained model, or in a codes-only collection the fact that items bring their codes. It
// is read from the store and never changes; revisions of a space have the codes of label
// sets in common and differ in the projections.
//
// An item has one code, whatever modality is searched for, and one projection: the plain sum,
// which tells the items of one code apart as well as the weighted sum does that made the code.
//
// The invariant: the codes of an item are a function of the Space, its vectors, the ids of its
// labels and the code that it brings, and of nothing else. Every writer calls Encode or
// EncodeAll: a put, a bulk load, a builder, an update. So a verification that calls them again
// gets the same codes, bit for bit (db/internal/verify/codes.go; db/codes_test.go has one
// against many at a time).
//
// All methods of a Space are safe for concurrent use. An Encoder is scratch memory for one
// goroutine, taken from Space.Encoders. No goroutine outlives a call.
//
// It imports record and what that imports, model for the mathematics, db/report for the public
// part of a revision's descriptor, and work to encode on several goroutines.
package spaces
