package cluster

import (
	"testing"
	"time"
)

// SettleAtOnce lets sweeps of this test remove objects that have just been stored.
func SettleAtOnce(t *testing.T) {
	was := settled
	settled = -time.Minute
	t.Cleanup(func() { settled = was })
}
