// Package wire is what goes over the network: operations in the log of a shard, requests to nodes, and
// their answers, in CBOR.
//
// Everything begins with a version byte. What is of another version, or has a field that is not known
// here, is refused and never guessed at: a replica that would read an operation otherwise than others do
// would not be equal to them any more. Decoders take any bytes, and bound what they allocate by what they
// are given.
package wire
