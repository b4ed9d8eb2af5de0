// Package cluster serves collections from several machines: cut into shards, each of them kept by several
// nodes, while any of these, and any of the NATS servers between them, may be lost.
//
// Nothing distributed is written here. NATS JetStream keeps the log of each shard, on three servers, and
// carries requests; a replica is a plain database, package db, that applies the log of its shard. What a
// replica holds follows from the log alone, so all replicas of a shard give the same answers.
//
//	servers   NATS servers, three or more, with JetStream and sync_interval: always
//	node      Open: has some shards, applies their logs, and answers requests
//	client    Connect: writes to logs, asks nodes, and merges their answers
//
// A program may be all three at a time. docs/SCALE.md says what holds under which faults, and how to run
// it.
package cluster
