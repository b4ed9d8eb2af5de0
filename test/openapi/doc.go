// Package openapi proves that the server of databases (db/serve) answers as its document says. It is in the
// module of tests, because nothing else needs the library that reads OpenAPI documents.
//
// The package has tests alone. They serve a real database and walk over all routes, by plain requests and by
// the Go client (db/client). A transport between the two validates each request and each answer against the
// document of GET /openapi.json. A test fails if the document has a route that the walk has not seen succeed
// and fail.
package openapi
