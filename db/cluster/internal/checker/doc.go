// Package checker decides whether a cluster has kept its promises, by what its clients saw alone, in the
// manner of Jepsen.
//
// Clients record each operation with the times at which it began and ended, and with its result. For each
// shard an order of all writes must exist that explains every answer:
//
//   - A write has its place between its begin and its end. One with an unknown result has it any time later,
//     or has not happened. One that failed for certain has no place.
//   - A conditional write has succeeded exactly if its condition holds at its place. A refused one changes
//     nothing. A write to its key that may have happened may explain it.
//   - A read shows the whole state of its shard behind some write. That state is not older than what the
//     session has read or written before, and has no write that began after the read had ended.
//   - A Final read shows everything.
//
// Reads of different sessions are not ordered: a replica may lag. Each write has a unique value. A Delete
// stores its value under another key, the tag, in the same batch.
//
// The package uses neither NATS nor a database, and does not know the log.
package checker
