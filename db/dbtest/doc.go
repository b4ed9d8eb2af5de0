// Package dbtest helps to test programs that embed package db: databases that verify
// themselves when a test ends, a brute-force oracle for searches, and generated items.
//
//	func TestShop(t *testing.T) {
//		d := dbtest.Open(t, "", nil) // in memory; closed and verified at the end
//		set := dbtest.Pairs{Unlabelled: .2}
//		c, err := d.CreateCollection(t.Context(), "main", set.Schema())
//		...
//		err = dbtest.Load(t.Context(), d, c, set.Items(0, 1000))
//		... // the program under test trains, writes and deletes
//		dbtest.CheckSearches(t, c, db.Query{From: "text", To: "image", Vector: words, Where: "number < 500"})
//	}
//
// # What is checked
//
// Open closes its database at the end of the test and verifies it deeply
// (db.VerifyOptions). It fails the test for damage, for a write to disk that had
// failed, for a call that is still running, and for goroutines that the database leaves
// behind. A test that makes a database fail on purpose opens it with db.Open.
//
// An Oracle reads all items of a collection, and answers by looking at each of them. It
// measures distances and evaluates filters itself, and uses no index: neither of codes
// nor of labels, modalities and fields. It takes from the database the contents of
// items, their codes, and the encoding of vectors. Deep verification checks that codes
// are those of the model.
//
// # Imports and concurrency
//
// The package imports db, db/event, internal/oracle and internal/synth. Tests that run
// in parallel may each open databases. Goroutines may share an Oracle.
package dbtest
