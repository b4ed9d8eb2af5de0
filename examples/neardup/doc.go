// Neardup finds pictures that are copies of others: smaller, darker, cropped or saved
// badly. It asks about each picture before it stores it. A picture has a perceptual hash
// of 64 bits, and copies have nearly the same hash. The collection holds codes that the
// program makes; nothing is learned.
//
//	go run ./examples/neardup
//
// The program imports db. Example runs it and has its output.
package main
