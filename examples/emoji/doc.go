// Emoji finds emoji by words, and words by emoji. Every picture of an emoji font and its
// Unicode name are the two modalities of one item. The labels are its group and subgroup.
//
//	go run . [--db DIR] [QUERY...]
//
// The program draws the pictures itself (picture.go). It turns them and the names (words.go) into
// vectors without any pre-trained network, and puts them into a database. It trains on six sevenths of them,
// measures with the others, and adds those without labels (build.go). A query is a search from one modality
// to the other (ask.go): an emoji finds words, words find emoji, in the order of codes. Where few names have
// all the words of a question, these are taken into it (words.go). Without a QUERY it shows a few answers
// (demo.go) and asks for more on a terminal.
//
// With --db, the database is kept, and a second run answers at once. Everything it needs is read from
// there. With --encode, the program
// makes vectors of words for `fddhdb explore`, which shows that database in the browser
// (ask.go).
//
// Sample output, on two cores, of
//
//	go -C examples/emoji run . "red heart" pizza 🌷 kitten
//
// A star marks what training never saw.
//
//	Drawing the emoji   1.0 s   1900 pictures, of the font in this program
//	Describing them     0.8 s   each picture by 469 numbers, each name by 2048
//	Storing             0.1 s   1586 with their labels; 314 are held out
//	Training            3.0 s   codes of 128 bits from 99 labels
//
//	Each of the 314 held out searches the 1586. A hit is right if it is of the same one of
//	nine groups: animals, food, flags ...
//
//	                          mAP     first 10 right
//	  picture -> words      0.805               79 %
//	  words -> picture      0.742               72 %
//	  by chance             0.126               13 %
//
//	Adding the others   0.1 s   314, without labels: their codes come from their features
//
//	  red heart           ❤️  🩶  🩷  💕  💔  🤍  🖤  💖  💚  💓
//	                      red heart, grey heart, pink heart, two hearts, broken heart
//	  pizza               🍕  🫔  🌭  🌮  🍔  🍖  🍗  🍞  🍟  🍲
//	                      pizza, tamale, hot dog, taco, hamburger, meat on bone, poultry leg
//	  🌷  tulip*          flamingo*, rose, hibiscus, cherry blossom, bouquet, wilted flower
//	  kitten              📝*  🧈*  👜*  🐦*  🥪  🥗  🍟  🥖  🌭  🌮
//	                      memo*, butter*, handbag*, bird*, sandwich, green salad, french fries
//	                      (no name learned from has "kitten": only its letters count)
//
// The last one shows where it fails: the codes know nothing of the meaning of words beyond the names.
//
// # Imports and invariants
//
// The program is a module of its own, because it needs a font and a shaper. Of fddhdb
// it imports db and model. Drawing and describing run on all cores, with a renderer for
// each goroutine; goroutines share only the parsed font. Training never sees a held-out
// emoji, nor its twin: TestSplit. TestFinder runs the program.
package main
