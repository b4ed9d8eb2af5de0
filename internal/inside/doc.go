// Package inside finds the database whose folder contains a path. Files written there are
// not safe: opening a database empties some of the folders in it.
//
// It imports the standard library alone, so that backups and the command line can use it
// without the database. It keeps no state: goroutines may call it at any time. A path is
// judged by the folder in which the file would be made, with links resolved: TestDatabase.
package inside
