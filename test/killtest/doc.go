// Package killtest kills processes that work with a database, again and again, and
// looks at what they leave behind. The processes write items, import, alter, back up,
// prune backups, restore and make checkpoints. The next process continues the import of
// the last one, or begins it anew.
//
// Its tests run their own binary as the process to kill. Through a pipe the process
// tells each operation before it begins, and its acknowledgement before the next one. A
// book keeps all that, and says what the folder may hold. TestKill proves that
// acknowledged work survives a kill, TestKillWithoutSync that without syncing only the
// latest writes are lost. The package has tests alone; they import the database, its
// backups and the seeds.
//
//	go -C test test ./killtest                            # a few kills
//	go -C test test ./killtest -timeout 0 -args -kills 500
package killtest
