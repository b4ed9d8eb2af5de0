// Neardup finds pictures that are copies of others: smaller, darker, cropped or saved
// badly. It asks about each picture before it stores it. A picture has a perceptual hash
// of 64 bits, and copies have nearly the same hash. The collection holds codes that the
// program makes; nothing is learned.
//
//	go run ./examples/neardup
//	go run ./examples/neardup [-db DIR] FOLDER
//
// The first form paints pictures. The second one looks at your own: the JPEG, PNG and GIF
// files of a folder and below. With -db the database stays, `fddhdb explore` shows it with
// the pictures, and the next run looks at new files only. Files are never changed.
//
// A hash knows where a picture is brighter than at its right. So a copy that was turned,
// mirrored or cropped by a quarter is not found, and two bare walls may look alike.
//
// The program imports db. Example runs it and has its output; TestFolder looks at files.
package main
