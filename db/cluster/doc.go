// Package cluster serves collections from several machines. A collection is divided into shards, and several
// nodes keep each shard. Any of these nodes, and any NATS server, may be lost.
//
// The package implements no consensus. NATS JetStream keeps the log of each shard, on three servers, and
// carries requests. A replica is a plain database, package db, that applies the log of its shard. Its state
// follows from the log alone, so all replicas of a shard give the same answers.
//
//	servers   NATS servers, three or more, with JetStream and sync_interval: always
//	node      Open: has some shards, applies their logs, and answers requests
//	client    Connect: writes to logs, asks nodes, and merges their answers
//
// A program may be all three at a time. docs/SCALE.md has the guarantees under faults, and how to run it.
package cluster
