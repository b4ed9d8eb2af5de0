// Package storetest tests implementations of backup.Store against the promises of the
// interface. It also has a store that keeps its objects in memory.
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) backup.Store {
//			s, err := mystore.Open(t.TempDir())
//			if err != nil {
//				t.Fatal(err)
//			}
//			return s
//		})
//	}
//
// Some promises are beyond a test: that an object survives a crash of the machine once
// Put has returned. Two things that no repository does are not tested: an object whose
// name is a folder of another one (a and a/b), and invalid names.
//
// The package imports backup, and the tests of backup do not import it.
package storetest
