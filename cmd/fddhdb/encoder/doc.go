// Package encoder makes vectors of texts and files, by programs of users, services behind an address and
// static models (kinds.go). The verbs search, explore and mcp share it. The database stores only descriptions
// of encoders (db.Encoder).
//
//	e := encoder.New(encoder.Program{Modality: "image", Command: []string{"python3", "clip.py"}})
//	defer e.Close()
//	vectors, err := e.Encode(ctx, 512, []string{"red car at night"})
//
// A program is started without a shell. It reads its inputs from standard input, never from its
// arguments. It stays running from its first input until Close.
//
// An Encoder is safe for concurrent use; one call of Encode at a time has the program. A goroutine
// reads what the program prints, a line at a time, so a program that floods fills no memory.
//
// Invariants: whatever a program does or does not, Encode returns within the limits of Program, and
// with an Error that has the program's name and the end of its stderr; the answer to an input is
// never taken for that to another; after an error, and after Close, neither the program nor, on
// Unix, any process of its group is left (encoder_test.go). On Linux the kernel ends the program with
// this process, however that ends. An encoder starts no encoder. No program of a database is run that
// its user has not trusted (trust.go). With a Fingerprint, no vector of another model is returned
// (identity.go).
package encoder
