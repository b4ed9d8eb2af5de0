// Matrix measures searches over the codes of package synth, and makes tables and
// figures of the results. It calls the command line, as users have it:
//
//	go build -o /tmp/fddhdb ./cmd/fddhdb
//	cd experiments
//	go run ./matrix run -fddhdb /tmp/fddhdb -out results.jsonl
//	go run ./matrix tables -in results.jsonl
//	go run ./matrix plots -in results.jsonl -dir ../../docs/bench
//	go run ./matrix codes -set S -bits 128 -n 1000000 -dir /tmp
//
// Run makes each set, imports it into a new database, and calls fddhdb bench with three
// kinds of queries: perturbed members of the set, fresh codes of its distribution, and
// both in turn. Then it deletes the database. It does not measure again what the file
// of results has, so an interrupted run continues where it was.
//
// The file of results has one JSON object a line: set, bits, n and kind, and the fields
// of fddhdb bench --json. A line whose op is "store" says what it took to import and
// store the set.
//
// The program imports codec, codec/vecfile and synth, and not package db: it measures
// what users run. One process runs at a time. TestRun proves that an interrupted run is
// continued and measures nothing twice.
package main
