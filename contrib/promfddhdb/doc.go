// Package promfddhdb hands the figures of an fddhdb database to Prometheus.
//
//	d, err := db.Open("photos.fddhdb", nil)
//	prometheus.MustRegister(promfddhdb.NewCollector(d, prometheus.Labels{"database": "photos"}))
//
// All of it comes from one call of DB.Stats whenever the figures are asked for: nothing goes
// on in between. docs/OPERATIONS.md of fddhdb has all metrics, what each means, and what to
// do when it moves.
package promfddhdb
