package clitest

import (
	"time"

	"github.com/fddhdb/fddhdb/db/report"
)

// Spaces returns two spaces, the first with revisions and their drift.
func Spaces() []report.SpaceInfo {
	at := func(minute int) time.Time { return time.Date(2026, 3, 1, 9, minute, 0, 0, time.Local) }
	return []report.SpaceInfo{
		{
			Space: 1, State: report.SpaceActive, Created: at(0), Bits: 64, Revision: 3,
			Items: 2173, Codes: 10,
			Taught: 2173, Pending: 12,
			ModelBytes: 1_300_000, Checksum: "0a1b2c3d", Recode: 4,
			Revisions: []report.RevisionInfo{
				{Revision: 1, Created: at(0), Items: 1900, Labelled: 1900, Pinned: true},
				{Revision: 2, Parent: 1, Created: at(5), Teacher: "auto", Lead: "text", Items: 173,
					Labelled: 100, Unlabelled: 73, Forgotten: 2,
					Drift: report.Drift{"image": .04, "text": .01}},
				{Revision: 3, Parent: 2, Created: at(9), Reason: "labels have grown", Items: 100,
					Labelled: 100, Pinned: true, Drift: report.Drift{"image": .31}},
			},
		},
		{Space: 2, State: report.SpaceStandby, Previous: true, Created: at(1), Bits: 32, Revision: 1,
			Items: 2173,
			Codes: 20, ModelBytes: 1200},
		{Space: 4, State: report.SpaceBuilding, Parent: 1, Created: at(10), Bits: 64, Revision: 1, Items: 500,
			Built: 1050, Codes: 9},
	}
}
