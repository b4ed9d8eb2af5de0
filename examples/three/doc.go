// Three searches among pictures, texts and sounds at once. Each item has two of the three,
// none has all, and each kind finds each other one. Words also find a picture that comes
// without text and labels.
//
//	go run ./examples/three
//
// The program imports db. TestThree proves what it prints.
package main
