// Package arrows holds the test that keeps the direction of imports and shows the size
// of each package. It has no code of its own.
//
// The table of layers is in layers_test.go: a package imports packages of lower layers
// only, and of other modules those that its layer names. A few stricter rules stand
// below the table. A package that has no layer fails the test: decide where it belongs
// first.
//
//	go test -v ./internal/arrows
//
// prints the lines and the exported names of every package. Tests and nested modules
// are not part of it. The files are read as they are, for all platforms.
//
// TestWrongImports proves that imports against the layers and rules fail.
package arrows
