// Package storetest tests implementations of backup.Store against what the interface
// promises, and has one that keeps its objects in memory.
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
// Not tested is what a test cannot see: that an object survives a crash of the machine
// when Put has returned. Nor are two things that no repository does: an object under the
// name of another one and a slash (a and a/b), and names that the interface rules out.
package storetest
