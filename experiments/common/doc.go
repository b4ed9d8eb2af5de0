// Package common has what the programs that measure fddhdb share: how they start,
// flags, tables and medians. The programs are in folders of their own:
//
//   - matrix: searches over generated codes, by way of the command line; the tables and
//     figures of docs/bench
//   - labels: codes without labels against FDDH of few labels, on sets of files
//   - orders: the orders of answers (search --rerank), on sets of files
//   - traintime: training against the number of items, and against numpy
//   - vectors: nearest neighbours of vectors, against USearch, coder/hnsw and chromem-go
//   - writes: synced writes, against the storage engine alone
//
// They are one module of their own, so that the tests of the product do not run theirs
// and the product requires nothing for their sake:
//
//	cd experiments
//	go run ./orders -h
//
// Package sets reads the sets of files. The programs may import every package of the product;
// no package of the product can import them. This package imports the standard library alone.
package common
