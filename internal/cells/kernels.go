package cells

import "github.com/fddhdb/fddhdb/internal/simd"

// Scans and products exist for each set of instructions. All give the same results. active is
// the fastest set that this machine can run; only tests change it.
var (
	sets   = simd.Sets(simd.VPOPCNTDQ)
	active = sets[0]
)
