// Package backup keeps backups of databases in a repository: objects that never change,
// named by the SHA-256 of what is in them, and a small manifest for each backup, written
// last. Backups share the objects that they have in common, so that the next one stores
// only what is new. What goes into a backup, and what is made of it, is package db's:
// see DB.Backup and Restore there.
//
//	store, err := backup.Folder("/mnt/backups/photos")
//	m, err := d.Backup(ctx, store, db.BackupOptions{})      // of an open database
//	all, err := backup.List(ctx, store)                     // the oldest first
//	p, err := backup.Prune(ctx, store, backup.PruneOptions{Keep: 7})
//	v, err := backup.Verify(ctx, store, backup.VerifyOptions{}, report)
//	m, err = db.Restore(ctx, store, "photos.restored", nil, db.RestoreOptions{})
//
// # Concurrency
//
// Any number of backups of any databases, prunes, verifications and restores may work on
// one repository at a time, in processes on several machines, whose clocks may differ. Any
// of them may be killed at any point: no backup that was completed is lost by it, and
// what it leaves is collected by a later Prune. A store needs to be able to do no more
// than four operations for that; how it works is described at the types writer and
// pruner.
//
// # Trust
//
// Whatever is read from a repository is checked: every piece against its SHA-256 and its
// size, every path in a manifest; so that a repository of a stranger can make a restore
// fail but neither write outside its folder nor exhaust memory. SHA-256 tells damage, not
// who has written something: whoever can write to a store can put another backup there,
// or delete all. Nothing is encrypted.
package backup
