package beam

import "github.com/cespare/xxhash/v2"

// ShardOf returns the shard of a key: XXH64 of its bytes, with seed 0, modulo the number of shards. Twice as
// many shards split each one in two: the items of shard i go to i and to i + shards.
func ShardOf(key string, shards int) int { return int(xxhash.Sum64String(key) % uint64(shards)) }
