// Package killtest kills processes that write to a database, import into it and alter it, and
// back it up, prune its backups, restore them and make checkpoints of it, again and again, and
// looks at what they leave behind. The next process goes on with what the last was importing,
// or begins it anew. Its tests run their own binary as the process to kill, which
// tells through a pipe what it is about to do and, before it goes on, what has been
// acknowledged.
//
//	go test ./internal/killtest                            # a few kills
//	go test ./internal/killtest -timeout 0 -args -kills 500
package killtest
