// Package backup keeps backups of databases in a repository. A repository has objects
// that never change, named by the SHA-256 of their contents, and a small manifest for
// each backup, written last. Backups share objects, so the next backup stores only what
// is new. Package db decides which files go into a backup, and makes a database of them
// again: see DB.Backup and Restore there.
//
//	store, err := backup.Folder("/mnt/backups/photos")
//	m, err := d.Backup(ctx, store, db.BackupOptions{})      // of an open database
//	all, err := backup.List(ctx, store)                     // the oldest first
//	p, err := backup.Prune(ctx, store, backup.PruneOptions{Keep: 7})
//	v, err := backup.Verify(ctx, store, backup.VerifyOptions{}, report)
//	m, err = db.Restore(ctx, store, "photos.restored", nil, db.RestoreOptions{})
//
// Pieces of files are cut at fixed lengths of 16 MiB, not by their content: tables of a
// database never change, and share nothing when they differ at all.
//
// # Imports and concurrency
//
// The package imports db/event, for progress, and internal/inside, and no other package
// of fddhdb: a backup is read without the database.
//
// Any number of backups of any databases, prunes, verifications and restores may work
// on one repository at a time, in processes on several machines, whose clocks may
// differ. Any of them may be killed at any point. No completed backup is lost by that,
// and a later Prune collects the leftovers. A store needs only four operations for
// that. The comments of the types writer and pruner have the algorithm and its proof;
// TestInterleavings tries it in random orders with killed processes and failing stores.
//
// # Trust
//
// Everything that is read from a repository is checked: every piece against its SHA-256
// and its size, and every path in a manifest. So a repository of a stranger can make a
// restore fail. It can neither write outside the target folder nor exhaust memory
// (FuzzManifest). SHA-256 detects damage, not authorship: anyone who can write to a
// store can replace or delete backups. Nothing is encrypted.
package backup
