// Package rest has the forms of requests and errors that the server (db/serve) and its client (db/client)
// exchange as JSON. Items, answers and reports have JSON of their own, in the packages that define them.
//
// The package holds no state and starts no goroutine. A form aliases the value that it was made from.
//
// Invariant: a query, a change and an error arrive as they were sent (rest_test.go): numbers keep their type,
// and errors.Is and errors.As find in an error what they found at the sender.
package rest
