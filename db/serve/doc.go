// Package serve serves databases by HTTP, to programs in any language. The handler goes into a program that
// has a database open:
//
//	h, err := serve.New(map[string]api.Database{"photos": api.Folder(d, nil)}, serve.Options{})
//	http.Handle("/v1/", h)
//
// Requests and answers are JSON; the paths are
//
//	/v1/{database}/collections/{collection}/items/{key}    GET, PUT, PATCH, DELETE
//	/v1/{database}/collections/{collection}:search         POST, as :radius, :count, :facets, :train, ...
//	/openapi.json                                          all of them
//
// What lasts longer than a request is a job: the answer is 202 and names it. A request with
// Accept: text/event-stream hears the events of its job instead, and ends it by going away.
//
// Without Options.Access everybody who reaches the handler may do everything: that is for a Unix socket, for
// loopback addresses (see Local), and behind the authentication of a program. Tokens is what a server on a
// network needs.
//
// net/http runs a goroutine for each request, and each running job has one. Places bound how many requests
// work at a time; a request has one neither while its body arrives nor while its answer is written. A client
// that neither sends nor reads for Options.Timeout is cut off. All types are safe for concurrent use.
//
// Invariants: a request that was answered with an error of the kind "closing" or "overloaded" has changed
// nothing; a request without the scope that its path needs reaches no database (access_test.go); a body is
// never larger in memory than its limit (hostile_test.go); the document of /openapi.json describes each
// request and each answer (module test, package openapi).
package serve
