// Package checker decides whether the observations of a cluster's clients agree with its logs, in the manner
// of Jepsen.
//
// Clients record each operation with the times at which it began and ended, and with its result. Afterwards
// the log of each shard is read and replayed by a simple model: a map of values by key. The log is the true
// order of all writes, so no order has to be searched for, and every check is exact:
//
//   - An acknowledged write has been applied exactly once. A write that failed for certain has not been
//     applied. A write with an unknown result may have been applied, once.
//   - A conditional write has succeeded exactly if the model says so.
//   - A write that began after another one was acknowledged stands behind it in the log of their shard.
//   - A read shows the whole state of its shard after some message. That state is not older than the session
//     has read or written before, and has no write that began after the read had ended.
//
// Reads of different sessions are not ordered: a replica may lag.
//
// Each write stores a unique value, by which its message is found in the log. Values are payloads. A Delete
// stores its value under another key, the tag, in the same batch.
//
// The package uses neither NATS nor a database.
package checker
