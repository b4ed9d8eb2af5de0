// Package shard says where an item is when a collection is cut into shards: what builds them (db/beam)
// and what serves them (db/cluster) agree on it, and so can a program that cuts a collection itself.
//
// A shard is a database of its own, which knows nothing of the others.
package shard

import "github.com/cespare/xxhash/v2"

// Of returns the shard of a key, from 0: XXH64 of its bytes, with seed 0, modulo the number of shards,
// which is 1 or more. Twice as many shards split each one in two: the items of shard i go to i and to
// i + shards. It is stored in what is built, and does not change.
func Of(key string, shards int) int { return int(xxhash.Sum64String(key) % uint64(shards)) }
