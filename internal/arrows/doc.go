// Package arrows holds the tests that keep the direction of imports and show the size
// of each package. It has no code of its own.
//
// The table of layers is in layers_test.go: a package imports packages of lower layers
// only, and of other modules those that stand beside it. Stricter rules stand below the
// table: what a room of the database imports, which names it uses, and what its own files
// may not have. A package that has no layer fails the test: decide where it belongs first.
//
//	go test -v ./internal/arrows
//
// prints the lines and the exported names of every package. Tests and nested modules
// are not part of it. The files are read as they are, for all platforms, without types.
//
// TestOnePlaceEndsACommit lists the functions of db that write to a store, or count a commit.
//
// TestWrongImports proves that imports against the layers and rules fail.
package arrows
