// Matrix measures searches over the codes of package synth and makes tables and
// figures of the results, by way of the command line that everybody has:
//
//	go build -o /tmp/fddhdb ./cmd/fddhdb
//	cd internal/measure
//	go run ./matrix run -fddhdb /tmp/fddhdb -out results.jsonl
//	go run ./matrix tables -in results.jsonl
//	go run ./matrix plots -in results.jsonl -dir ../../docs/bench
//	go run ./matrix codes -set S -bits 128 -n 1000000 -dir /tmp
//
// Run makes each set, imports it into a database of its own, which is deleted
// afterwards, and calls fddhdb bench with three kinds of queries: perturbed members of
// the set, fresh codes of its distribution, and both in turn. What is in the file of
// results already is not measured again, so that an interrupted run goes on where it
// was.
//
// The file of results has a JSON object a line: set, bits, n and kind, and the fields of
// fddhdb bench --json; or, where op is "store", what importing and storing the set took.
package main
