// Package measure is what bench does: it times searches by each tier, checks their answers
// against a scan that shares no code with them, and prints and draws what it has found.
//
// It searches a Target, which a collection is (OfCollection) and tests fake. It imports chart,
// term and package db, and no verb.
//
// One goroutine measures, so that nothing else competes for the core. Invariants: the tiers
// take turns, and what comes before a turn is not counted; an answer is right if it is the
// nearest items in the order of their distances, whatever the order within a distance
// (check_test.go); the yardstick reads every code (fullscan_test.go); figures are those of the
// times (measure_test.go).
package measure
