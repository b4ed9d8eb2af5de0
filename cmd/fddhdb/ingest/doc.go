// Package ingest has the verbs that bring items in and make their vectors: import, encoder and reembed.
//
// An import reads its files by package source, and stores them in parts by the engine of package rows. Each
// part has a mark of how far it is, so that the same command goes on after an interruption. An encoder is a
// program or server that makes vectors; it runs only if the user has set or trusted it.
//
// Invariant: what a verb has stored stays when it fails, and its error says how to go on.
package ingest
