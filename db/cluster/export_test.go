package cluster

import (
	"testing"
	"time"
)

// SettleAtOnce lets sweeps of this test remove objects that have just been stored.
func SettleAtOnce(t *testing.T) {
	was, owned := settled, abandoned
	settled, abandoned = -time.Minute, -time.Minute
	t.Cleanup(func() { settled, abandoned = was, owned })
}
