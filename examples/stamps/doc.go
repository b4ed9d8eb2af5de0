// Stamps learns from pictures with names in English and Greek, and then each finds each other: an English
// name finds pictures and Greek names, and a picture that nobody has named finds names. The program
// prints answers, and how good they are: mAP of stamps that training has not seen, against chance.
//
//	go run ./examples/stamps
//	go run ./examples/stamps -db /tmp/stamps.db "a red rose" "ένα ψάρι"
//	fddhdb explore /tmp/stamps.db --open
//
// The pictures are the stamps of Tux Paint: photographs and drawings with names in 68 languages, in the
// package tuxpaint-stamps-default of Debian and Ubuntu. Without root:
//
//	apt-get download tuxpaint-stamps-default && dpkg-deb -x tuxpaint-stamps-default_*.deb /tmp/tuxpaint
//	go run ./examples/stamps -stamps /tmp/tuxpaint/usr/share/tuxpaint/stamps
//
// Without the package the program draws stamps, which are easier to tell apart. The label of a stamp is
// its folder, such as animals/birds. A picture becomes a vector by perceptual.Look, a name by hashing the
// runs of letters in it. Neither knows birds, or Greek: the program learns both from the labels. A name
// whose words no learned stamp has is nothing but its letters, so not every answer is right.
//
// The program imports codec/perceptual and db. TestDrawn and TestTuxPaint prove what it prints.
package main
