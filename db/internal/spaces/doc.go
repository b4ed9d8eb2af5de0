// Package spaces is what gives items their codes. A Space is one revision of a space: a
// trained model, or in a codes-only collection the fact that items bring their codes. It
// is read from the store and never changes; revisions of a space have the codes of label
// sets in common and differ in the projections.
//
// A space has a code set for each target: one that all searches share, or one for each target
// modality. The model has weights for each. An item has a code in a set only if it has the
// target, so a search for that target needs no filter. Labels give an item the same code in all
// sets. Each item has one projection whatever the targets: the plain sum, which tells the items
// of one code apart as well as the weighted sums do.
//
// Encode and EncodeAll are functions of a space and an item, whoever calls them: a write, a
// bulk load, a builder, or a verification that makes the codes again. All methods are safe
// for concurrent use; encoders are scratch memory of one goroutine, from a pool.
package spaces
