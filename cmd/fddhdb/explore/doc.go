// Package explore shows a database in the browser: a page to search it and to look at its models
// and statistics, and the same as JSON under /api. docs/EXPLORE.md describes both.
//
// It imports package db, encoder, exit, forms, picture and source, and no verb: the verb explore
// starts it.
//
// It is for one person on one machine. It reads, and changes nothing. Anyone who reaches the port
// can read as much, so it belongs on a loopback address.
//
// net/http runs a goroutine for each request. Rooms (server.go) bound how many of them compute,
// receive or encode at a time. An encoder has a turn; uploads have a lock.
//
// Invariants: requests that a browser sends on behalf of other sites are refused (server_test.go),
// and the page loads nothing from elsewhere (TestPage); content of a database cannot run in the
// page (media_test.go, FuzzSniff); a file that was sent goes when newer ones have come and nothing
// reads it, and all go with Close (TestUploadsGo, TestPicturesGo); a slow client, encoder or reader
// does not delay other requests (waiting_test.go); a search returns what a linear scan finds
// (TestSearchIsAScan).
package explore
