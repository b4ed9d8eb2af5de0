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

// GrowInShort lets growths of this test wait for so long alone: for replicas with problems, and for parts.
func GrowInShort(t *testing.T, ill, whole time.Duration) {
	wasIll, wasWhole := illFor, wholeIn
	illFor, wholeIn = ill, whole
	t.Cleanup(func() { illFor, wholeIn = wasIll, wasWhole })
}
