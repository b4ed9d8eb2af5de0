package db

import "github.com/fddhdb/fddhdb/db/report"

// These are what calls return as reports. Package report says what is in each.
type (
	Drift        = report.Drift
	Distances    = report.Distances
	RevisionInfo = report.RevisionInfo
	Finding      = report.Finding
	Verification = report.Verification
	Repairing    = report.Repairing
	Space        = report.Space
	Training     = report.Training
	Update       = report.Update
	Adoption     = report.Adoption
	Reindexing   = report.Reindexing
	Retrieval    = report.Retrieval

	NeighborRecall = report.NeighborRecall
	WindowRecall   = report.WindowRecall
	Explain        = report.Explain
	Recovery       = report.Recovery
	Loss           = report.Loss
	Activity       = report.Activity
	SearchStats    = report.SearchStats
	CacheStats     = report.CacheStats
	StoreStats     = report.StoreStats
	LastBackup     = report.LastBackup
	SpaceInfo      = report.SpaceInfo
	SpaceState     = report.SpaceState
)

// DriftLimit is the Drift above which it is time to train again.
const DriftLimit = report.DriftLimit
