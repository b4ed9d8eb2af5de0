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

// GrowInShort lets growths of this test wait for so long alone: for replicas with problems, and for parts.
func GrowInShort(t *testing.T, ill, whole time.Duration) {
	wasIll, wasWhole := illFor, wholeIn
	illFor, wholeIn = ill, whole
	t.Cleanup(func() { illFor, wholeIn = wasIll, wasWhole })
}
