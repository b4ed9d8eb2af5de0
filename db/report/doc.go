// Package report is what calls of a database tell: structs of figures, with the names that
// they have in JSON. They have no behaviour, and belong to whoever gets them. The package db
// names all of them again.
package report
