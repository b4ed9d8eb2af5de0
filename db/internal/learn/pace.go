package learn

import (
	"context"
	"time"

	"github.com/fddhdb/fddhdb/db/internal/work"
)

// A builder stores the codes of a block of rows in one commit, which writers wait for. Tables
// cost a dozen files to make durable, a batch some microseconds a row. So large blocks are
// stored as tables, small ones in a batch.
const (
	BlockRows = 16 << 10 // the rows of a block without a rate limit
	TableRows = 4 << 10  // blocks of so many rows or more are stored as tables
	batchRows = 1 << 10  // the most rows of a block that is to be stored in a batch
)

// blockSize returns the number of rows of a block at a rate in items a second; 0 means no
// limit. It is the work of half a second where that makes a block for tables, else of a tenth
// of a second.
func blockSize(rate int) int {
	switch {
	case rate == 0 || rate >= 2*BlockRows:
		return BlockRows
	case rate >= 2*TableRows:
		return rate / 2
	}
	return min(max(rate/10, 1), batchRows)
}

// pace waits until n items since the given time are no more than rate items a second; 0 means
// no limit. It returns the error of ctx if that ends.
func pace(ctx context.Context, since time.Time, n, rate int) error {
	if rate == 0 {
		return ctx.Err()
	}
	return work.SleepUntil(ctx, since.Add(time.Duration(float64(n)/float64(rate)*float64(time.Second))))
}
