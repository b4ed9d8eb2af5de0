// Package attach lets many processes use one database. The first one owns the folder, and serves it to the
// others by a Unix socket in the folder; the others attach to it, and work as if they had the folder open.
//
//	d, err := attach.Open(ctx, "photos.db", attach.Options{})
//	if err != nil {
//		return err
//	}
//	defer d.Close()
//	c, err := d.Collection(ctx, "main")
//
// A program that opens a database by package db calls Serve, so that others can attach to it.
//
// If the owner ends, even by a crash, one of those that are attached owns the folder next, and the others
// attach to it; calls under way are made again where that is safe (see package client). The lock of the
// folder decides who owns it: one process at a time holds the lock.
//
// The socket is OWNER in the folder, with mode 0600: its user alone can attach. If the system has no Unix
// sockets, or the path of the folder is too long for one, OWNER is a file with a port of the loopback address
// and a secret. A connection to the port has to send the secret first.
//
// Open starts goroutines that serve, Close ends them. All types are safe for concurrent use.
//
// Invariant: only the process that holds the lock of the folder replaces or removes OWNER.
package attach
