// Package spaces is what gives items their codes. A Space is one revision of a space: a
// trained model, or in a codes-only collection the fact that items bring their codes. It
// is read from the store and never changes; revisions of a space have the codes of label
// sets in common and differ in the projections.
//
// Encode and EncodeAll are functions of a space and an item, whoever calls them: a write, a
// bulk load, a builder, or a verification that makes the codes again. All methods are safe
// for concurrent use; encoders are scratch memory of one goroutine, from a pool.
package spaces
