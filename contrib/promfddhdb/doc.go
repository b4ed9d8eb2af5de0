// Package promfddhdb gives the figures of an fddhdb database to Prometheus.
//
//	d, err := db.Open("photos.fddhdb", nil)
//	prometheus.MustRegister(promfddhdb.NewCollector(d.Stats, prometheus.Labels{"database": "photos"}))
//
// All figures come from one call of DB.Stats when Prometheus asks for them; nothing
// runs in between. docs/OPERATIONS.md of fddhdb lists all metrics, says what each
// means, and what to do when it changes.
//
// The package imports package db, db/event and the client of Prometheus. Goroutines may
// share a collector. TestCollector proves the values, TestAllOperations that no
// operation is missing, TestMetricsAreDocumented that the document is complete.
package promfddhdb
