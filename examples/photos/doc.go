// Photos makes the files that the documents of fddhdb work with: photographs of a holiday,
// drawn and not taken, with captions.
//
//	go run ./examples/photos DIR
//	go run ./examples/photos -ask "a dog at dusk" FILE.npy
//
// The first form writes these files into the folder DIR. Each has a row or a line for each
// photo:
//
//	photos_image.npy   1,000 photos: the mean red, green and blue of a grid of 4 x 4
//	photos_text.npy    which of the words of words.txt the caption has
//	photos_labels.txt  where it is, the time of day, and who is in it, if anybody
//	photos_keys.txt    the names of the files
//	photos_fields.csv  the year, and the caption
//
// It writes the same files for 200 further photos to ask with (test_*), for 300 that come
// later (later_*), and for 100 to ask with then (latertest_*). Another camera has taken the
// later photos; its colours are warmer and darker. The second form writes the vector of a
// question, which has the form of the vector of a caption.
//
// The program imports files. The same files are written every time: the documents
// show what fddhdb prints about them. TestFiles and TestAsk test them.
package main
