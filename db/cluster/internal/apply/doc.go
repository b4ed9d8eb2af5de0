// Package apply makes the log of a shard into a database.
//
// A State takes the messages of the log in order, and applies each of them once. What the database holds
// then follows from the log alone: rows, ids of labels, codes, the order of answers, and what each
// operation has come to are equal on every replica, however many messages come at a time, and however
// often the process is killed. That rests on three things: a message and its sequence are stored in one
// commit (db.Batch.Mark); a condition is decided where its operation stands in the log; and nothing else
// writes to the database.
//
// Nothing here knows NATS.
package apply
