// Package wire defines the messages of a cluster, in CBOR: operations in the log of a shard, requests to
// nodes, and their answers.
//
// Every message begins with a version byte. A message of another version, or with an unknown field, is
// refused and never guessed at: a replica that read an operation differently from others would no longer
// equal them. Decoders take any bytes, and bound their allocations by the size of the input.
package wire
