// Package codec holds the bytes of fddhdb: packed binary codes, the Hamming kernels
// over them, and the encodings of everything that the database stores.
//
// A code of q bits (q a multiple of 8, 8 to 4096) lives in memory as a [Code]: q/64
// words, rounded up, with zeros in the unused high bits of the last word. Bit j of the
// code is bit j mod 64 of word j/64. On disk and on the command line it is q/8 bytes,
// and bit j is bit j mod 8 of byte j/8, as numpy.packbits(..., bitorder="little")
// writes it. The two forms agree on every machine because the conversion goes through
// little-endian loads.
//
// # Encodings
//
// A comment in these files describes each encoding; docs/FORMAT.md gathers them: key.go (keys), block.go
// (packed blocks of 256 rows), sets.go (bitmaps that are merged), posting.go (sets of code numbers, merged
// likewise), record.go (items, vectors). All decoders accept bytes of any origin: they return an error
// wrapping [ErrCorrupt], never panic, and never allocate more than a small multiple of their input
// (FuzzAllocation).
//
// # Imports and concurrency
//
// The package imports roaring, and of this module internal/simd alone. It
// opens no file, starts no goroutine and has no lock: functions are pure, and values
// are not synchronised. Goroutines may read a value together; a writer needs it for
// itself.
//
// # Invariants
//
//   - Every set of kernels finds what the definition finds: TestWithinAgrees and the
//     tests after it. No kernel reads beyond its slices: TestKernelsReadNothingElse.
//   - Every value has one encoding, and a decoder refuses all others: FuzzKey,
//     FuzzEntries.
//   - Merging in any order gives the same value: the tests of merge_test.go.
package codec
