package perceptual

import (
	"image"
	"slices"
)

// A Hash is a function of this package by its name, as Schema.Hash of package db stores it.
type Hash struct {
	Name string
	Bits int // of its codes
	Near int // distance of copies to begin with, in bits, see the package comment

	// OfPicture returns the code of a picture and its quality, from 0 to 100; -1 if the hash does not tell.
	// It is nil for a hash of texts.
	OfPicture func(m image.Image) (code []byte, quality int)

	// OfText returns the code of a text. It is nil for a hash of pictures.
	OfText func(text string) []byte
}

// Hashes are pdq, phash, dhash and simhash. Do not change them.
var Hashes = []*Hash{
	{Name: "pdq", Bits: 256, Near: 31, OfPicture: PDQ},
	{Name: "phash", Bits: 64, Near: 7, OfPicture: func(m image.Image) ([]byte, int) { return PHash(m), -1 }},
	{Name: "dhash", Bits: 64, Near: 4, OfPicture: func(m image.Image) ([]byte, int) { return DHash(m), -1 }},
	{Name: "simhash", Bits: 64, Near: 3, OfText: SimHash},
}

// Named returns the hash of that name, nil if there is none.
func Named(name string) *Hash {
	i := slices.IndexFunc(Hashes, func(h *Hash) bool { return h.Name == name })
	if i < 0 {
		return nil
	}
	return Hashes[i]
}
