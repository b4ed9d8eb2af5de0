package cells

// These say from how many vectors on an index is worth its work. Tests have less, so that few items
// meet all that an index does; they set them before a database is open.
var (
	// ExactNumbers is how many numbers of vectors are all compared: that takes some tens of
	// microseconds. With 0 an index is used whatever that costs.
	ExactNumbers uint64 = 1 << 20

	// FoldAfter is how many rows an index may be behind: a search compares them all, which takes some
	// 20 microseconds.
	FoldAfter = 512

	// LeastMeasured is a number of entries below which nothing is measured again: so few are all
	// compared.
	LeastMeasured = 256

	// LeastSplit is how many entries are compared in no time: a cell of so many is not worth a split.
	LeastSplit = 64
)
