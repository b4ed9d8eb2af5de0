package cluster

import (
	"testing"
	"time"
)

// SettleAtOnce lets sweeps of this test remove objects that have just been stored.
func SettleAtOnce(t *testing.T) {
	was, owned, apart := settled, abandoned, between
	settled, abandoned, between = -time.Minute, -time.Minute, 0
	t.Cleanup(func() { settled, abandoned, between = was, owned, apart })
}
