package db

import "github.com/fddhdb/fddhdb/mih"

// storedSplit returns how codes of q bits are cut for the stored postings: into
// 16 bits each, whatever their number, as postings cannot be cut anew when a
// collection grows. With a million codes a posting has some 15 numbers.
func storedSplit(q int) mih.Split { return mih.NewSplit(q, (q+15)/16) }
