// Package perceptual makes codes of pictures and texts that stay near when a picture is scaled or recoded, or
// a text is edited a little. The codes need no training. Store them in a codes-only collection and search
// within a few bits.
//
//	code      bits  made of   near      use it for
//	PDQ       256   pictures  31 bits   copies of photographs; the safest of the three, tells bad pictures
//	PHash      64   pictures   7 bits   the same in a quarter of the memory, with more false hits
//	DHash      64   pictures   4 bits   copies that were scaled or recoded alone
//	SimHash    64   texts      3 bits   pages and messages with a few changed words
//
// "near" is a distance to begin with. The authors of PDQ advise 31 bits. Among 713 photographs PHash within 7
// bits and DHash within 4 had a precision of 98 % or more (experiments/hashes). Lower the distance when you
// see false hits, raise it when you miss copies. A picture that was turned or mirrored is far from its
// original: search for all of PDQTurns. A picture that was cropped is far, too: by 5 %, up to 70 bits of PDQ.
//
// Look makes a vector in place of a code, which is near that of pictures that look alike, copies or not.
//
// The hexadecimal digits of a code are in the order in which other programs print them: the reference of PDQ,
// and str() of the library imagehash for Python. Equal pixels have equal codes on every machine.
//
// Alpha is ignored, as the references ignore it: a transparent pixel counts with the colour that it stores.
// A format that multiplies colours by alpha stores black for a pixel that is fully transparent.
//
// All functions are pure: any number of goroutines may call them, while no one writes to the picture.
//
// Sources: PDQ: Facebook, "The TMK+PDQF Video-Hashing Algorithm and the PDQ Image-Hashing Algorithm", 2019.
// pHash: Zauner, "Implementation and Benchmarking of Perceptual Image Hash Functions", 2010. SimHash:
// Charikar, "Similarity Estimation Techniques from Rounding Algorithms", STOC 2002; Manku, Jain and Das
// Sarma, "Detecting Near-Duplicates for Web Crawling", WWW 2007.
package perceptual
