// Package apply turns the log of a shard into a database.
//
// A State takes the messages of the log in order, and applies each of them once. The content of the database
// then follows from the log alone: rows, ids of labels, codes, the order of answers, and the outcomes of
// operations are equal on every replica, however many messages come at a time, and however often the process
// is killed. This rests on three rules. A message and its sequence are stored in one commit (db.Batch.Mark).
// A condition is decided at its operation's position in the log. Nothing else writes to the database.
//
// The package does not know NATS.
package apply
