package db

import "github.com/fddhdb/fddhdb/db/report"

// These are what calls return as reports. Package report has their fields, and the types of these.
type (
	Drift        = report.Drift
	Finding      = report.Finding
	Verification = report.Verification
	Repairing    = report.Repairing
	Space        = report.Space
	Training     = report.Training
	Update       = report.Update
	Reindexing   = report.Reindexing
	Retrieval    = report.Retrieval

	Explain    = report.Explain
	Activity   = report.Activity
	SpaceInfo  = report.SpaceInfo
	SpaceState = report.SpaceState
)

// DriftLimit is the Drift above which it is time to train again.
const DriftLimit = report.DriftLimit
