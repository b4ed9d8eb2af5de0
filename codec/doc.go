// Package codec holds the bytes of fddhdb: packed binary codes and the Hamming
// kernels over them, and the encodings of everything that the database stores.
//
// A code of q bits (q a multiple of 8, 8 to 4096) lives in memory as a [Code]:
// q/64 words, rounded up, the unused high bits of the last word zero. Bit j of
// the code is bit j mod 64 of word j/64. On disk and on the command line it is
// q/8 bytes, bit j being bit j mod 8 of byte j/8, which is what
// numpy.packbits(..., bitorder="little") writes; the two forms agree on every
// machine because the conversion goes through little-endian loads.
//
// # Encodings
//
// The files key.go (keys), block.go (packed blocks of 256 rows), layer.go
// (bitmaps that are merged), posting.go (sets of code numbers, likewise) and
// record.go (items and features) each describe one encoding in the comment at
// their head; docs/FORMAT.md gathers them. All decoders accept bytes from
// anywhere: they return an error wrapping [ErrCorrupt], never panic, and never
// allocate more than a small multiple of their input.
//
// # Concurrency
//
// Functions are pure and values are not synchronised: concurrent reads are
// fine, a writer needs the value for itself.
package codec
