// Service is a database behind HTTP, to start a service of your own from. Requests have
// limits and timeouts, and errors are JSON. Models are trained and exchanged while it
// serves. Its end loses nothing.
//
//	go run ./examples/service [-addr localhost:8080] [-dir service.fddhdb]
//
//	PUT    /items/KEY              {"vectors": {"image": [4 numbers], "text": [3 numbers]}, "labels": ["cat"], "title": "..."}
//	GET    /items/KEY
//	DELETE /items/KEY
//	POST   /search                 {"from": "text", "to": "image", "vector": [3 numbers], "k": 10, "where": "label = ?", "args": ["cat"]}, or "key" for "vector"
//	POST   /models                 {"bits": 32} trains one; the first is used at once
//	GET    /models
//	POST   /models/SPACE/activate  makes searches use it from now on
//	GET    /health
//
// The program imports db and model. Requests run in goroutines of net/http and share the
// collection, which needs no lock; a channel bounds their number. TestServingGoesOn proves
// that searches and writes go on through trainings, TestShutdownLetsRequestsEnd and
// TestShutdownCutsOff that every end closes the database.
package main
