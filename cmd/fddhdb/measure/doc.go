// Package measure is the work of bench: it times searches by each tier, checks their
// answers against a scan that shares no code with them, and prints and draws the times.
//
// It searches a Target: a collection (OfCollection), or a fake in tests. It imports
// chart, term and package db, and no verb.
//
// One goroutine measures, so that nothing else competes for the core.
//
// Invariants: tiers take turns, and the warm-up before a turn is not counted; an answer
// is right if it has the nearest items in order of distance, in any order within a
// distance (check_test.go), or in an order that is measured by itself, in that order by what
// is computed from vectors (check_order_test.go); the recall of an answer by vectors is that against the
// exact one of the same run (recall_test.go); the yardstick reads every code (fullscan_test.go); figures
// are computed from the times as defined (measure_test.go).
package measure
