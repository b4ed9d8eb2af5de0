package learn

import (
	"context"
	"time"

	"github.com/fddhdb/fddhdb/db/internal/work"
)

// A builder stores the codes of a block of rows in one commit, which writers wait for.
// Blocks of many rows are stored as tables, those of few in a batch: tables cost a dozen
// files that have to be made durable, a batch some microseconds a row.
const (
	BlockRows = 16 << 10 // without a limit
	TableRows = 4 << 10  // from here on as tables
	batchRows = 1 << 10  // of a block that is not
)

// blockSize returns how many rows there are in a block at a rate in items a second, 0
// for no limit: what comes in a tenth of a second, or in half of one where there are
// tables.
func blockSize(rate int) int {
	switch {
	case rate == 0 || rate >= 2*BlockRows:
		return BlockRows
	case rate >= 2*TableRows:
		return rate / 2
	}
	return min(max(rate/10, 1), batchRows)
}

// pace waits until n items since then make no more than a rate.
func pace(ctx context.Context, since time.Time, n, rate int) error {
	if rate == 0 {
		return ctx.Err()
	}
	return work.SleepUntil(ctx, since.Add(time.Duration(float64(n)/float64(rate)*float64(time.Second))))
}
