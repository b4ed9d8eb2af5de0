// Package client reaches a database that a server (db/serve, fddhdb serve) has open. It is the database of
// package api: a program works the same on a folder and on a server.
//
//	d, err := client.Open("https://photos.example.org/photos", client.Options{Token: token})
//	c, err := d.Collection(ctx, "main")
//	r, err := c.Search(ctx, db.Query{From: "text", Vector: words})
//
// The errors are those of package db, for errors.Is and errors.As, with the texts that the server gave them.
// A request that the server has not carried out is sent again: where the server could not be reached, was
// closing or had too much to do, until the context ends or Options.Patience is over. After a connection that
// failed midway, reads are sent again, and puts, merges and deletes by key. A put that is sent again replaces
// what another process has put under the key in between, and the number of a delete that is sent again may be
// 0: where several processes write one item, PutIf tells. Other calls give ErrUnknown: look whether the
// change was made.
//
// A Database starts goroutines only while calls run, and is safe for concurrent use.
package client
