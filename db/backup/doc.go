// Package backup keeps backups of databases in a repository: objects that never change,
// named by the SHA-256 of what is in them, and a small manifest for each backup, written
// last. Backups share the objects that they have in common, so that the next one stores
// only what is new. What goes into a backup, and what is made of it, is package db's:
// see DB.Backup and Restore there.
package backup
