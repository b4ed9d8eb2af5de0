package cells

// These say from how many vectors on an index is worth its work. Tests have less, so that few items
// meet all that an index does; they set them before a database is open.
var (
	// ExactCost is how many nanoseconds comparing all may take for an index not to be asked: so few
	// vectors are compared exactly, whatever recall is wanted. With 0 an index is used whatever that
	// costs.
	ExactCost = 125_000.

	// FoldAfter is how many rows an index may be behind: a search compares them all, which takes some
	// 20 microseconds.
	FoldAfter = 512

	// Slack is how much a cell takes on in any case, however few entries it has.
	Slack = 4.
)
