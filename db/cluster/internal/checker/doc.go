// Package checker decides whether what clients have seen of a cluster agrees with its logs, in the manner of
// Jepsen.
//
// Clients record each operation with the times at which it began and ended, and with its result. Afterwards
// the log of each shard is read and replayed by a simple model: a map of values by key. The log is the true
// order of all writes, so no order has to be searched for, and every check is exact:
//
//   - A write that was acknowledged has been applied exactly once. One that has failed for certain has not been
//     applied. One of which nobody knows may have been applied, once.
//   - A conditional write has succeeded exactly where the model says so.
//   - A write that began after another one had been acknowledged stands behind it in the log of their shard.
//   - A read shows the state of its shard behind some message, whole. That state is not older than what the
//     session has read or written before, and holds nothing that was written after the read had ended.
//
// Reads of different sessions are in no order: a replica may lag behind.
//
// Each write stores a value of its own, which is how its message is found in the log. Values are payloads. A
// Delete stores its value under another key, the tag, in the same batch.
//
// Nothing here knows NATS, or asks a database.
package checker
