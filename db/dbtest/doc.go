// Package dbtest helps to test programs that embed package db: databases that check
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
// Open closes its database at the end of the test, verifies it deeply (db.VerifyOptions),
// and fails the test with what is wrong: damage, a write to disk that had failed, a call
// that still goes on, goroutines that the database leaves behind. A test that makes a
// database fail on purpose opens it with db.Open.
//
// An Oracle reads all items of a collection and answers by looking at each of them: it
// measures distances itself, evaluates filters itself, and uses neither the index of codes
// nor those of labels, modalities and fields. It takes from the database what items hold,
// their codes, and what a vector is encoded as; whether codes are those that the model
// gives is what deep verification tells.
//
// # Concurrency
//
// Tests that run in parallel may each open databases. An Oracle may be shared by
// goroutines.
package dbtest
