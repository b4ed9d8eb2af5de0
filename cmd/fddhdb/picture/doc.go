// Package picture finds the files of pictures that items name, below one folder: sheet draws them,
// explore shows them.
//
// It reads items of package db, and imports no verb. A Folder is safe for concurrent use; a File
// belongs to one goroutine.
//
// Invariant: no file outside of the folder is opened, whatever an item names, and no pipe
// (picture_test.go).
package picture
