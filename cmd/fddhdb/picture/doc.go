// Package picture finds the files of pictures that items name, below one folder, for explore and reembed, and
// decodes pictures for their hashes.
//
// It reads items of package db, and imports no verb. A Folder is safe for concurrent use. No file outside of
// the folder is opened, whatever an item names, and no pipe (picture_test.go).
package picture
