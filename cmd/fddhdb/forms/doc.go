// Package forms has the forms in which schemas, items, answers and statistics leave programs: as text for
// people, and as JSON for scripts, which is that of --json and of the API of explore. An item has its own
// JSON, see db.Item.MarshalJSON. It also has the form in which people write a field of a schema.
//
// It prints by package term and imports package db for the values. It holds no state and starts no
// goroutine; a JSON form aliases the value that it was made from.
//
// Invariants: text from a database goes through term.Plain; a cell of a field or of a count has in data the
// value that JSON has; the names in JSON are a contract with scripts: names may be added, and none changes.
// The scripts of the verbs (cmd/fddhdb/testdata/script) and the tests of explore check them.
package forms
