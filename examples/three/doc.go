// Three searches among pictures, texts and sounds at once. Each item has two of the three,
// none has all, and each kind finds each other one. The program prints how many of the
// first hits are right, against chance. Words also find a picture that comes without text
// and labels. The function item says where data of your own comes in.
//
//	go run ./examples/three
//
// The program imports db. TestThree proves what it prints.
package main
