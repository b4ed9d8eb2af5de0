// Package run runs one verb of a command line: it declares the flags that many verbs have, opens the database
// that a verb is about, runs the verb, and prints its result.
//
// A function of package command or ingest declares each verb, with its help and flags, by Env.NewVerb. The
// run of a verb reads its flags, opens a database by Verb.Look or Verb.Change, calls package api and prints,
// by Verb.Tell or List. A database is a folder, which this process or another one owns, the URL of a server,
// or an Elsewhere, which is the database of another program, such as a cluster. The shell keeps one open:
// Session.
//
// One goroutine runs a verb; Signals of package shell ends it.
//
// Invariant: a verb opens its database here and nowhere else, and knows no other verb.
package run
