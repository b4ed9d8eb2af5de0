package db

import (
	"context"
	"encoding/json"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/model"
)

// A SpaceState says what a space is used for.
type SpaceState string

// States of spaces.
const (
	SpaceBuilding SpaceState = "building" // not all items have their codes in it yet
	SpaceStandby  SpaceState = "standby"  // complete: it can be searched by number, and activated
	SpaceActive   SpaceState = "active"   // searches use it
)

// SpaceInfo is what there is to tell of a code space.
type SpaceInfo struct {
	Space    Space      `json:"space"`
	State    SpaceState `json:"state"`
	Previous bool       `json:"previous,omitempty"` // Rollback goes back to it
	Parent   Space      `json:"parent,omitempty"`   // the space whose model it took over; 0: it was trained
	Created  time.Time  `json:"created"`
	Bits     int        `json:"bits"`
	Views    []string   `json:"views,omitempty"` // target modalities, where each has codes of its own
	Revision uint32     `json:"revision"`        // that is in use

	Items   int `json:"items"`            // that have a code
	Built   int `json:"built,omitempty"`  // items that have been looked at, while it is being built
	Codes   int `json:"distinct_codes"`   // that some item has; the sum over the views
	Taught  int `json:"taught"`           // items that its projections have learned from
	Pending int `json:"pending"`          // items that they have not seen yet
	Recode  int `json:"recode,omitempty"` // items whose codes are not those of their labels yet

	// The model that it was trained with, as it is stored, and the statistics.
	ModelBytes      int64  `json:"model_bytes"`
	StatisticsBytes int64  `json:"statistics_bytes"`
	Checksum        string `json:"checksum,omitempty"` // CRC-32C of the model, 8 hexadecimal digits

	// Training is the report of the training, nil where there was none.
	Training *model.Report `json:"training,omitempty"`
	// Revisions that are kept, ascending; none in a codes-only collection.
	Revisions []report.RevisionInfo `json:"revisions"`
}

// Spaces tells of all code spaces of the collection, by ascending number, and of the
// revisions of each that are kept. Collections of snapshots tell of those that there
// were. It reads descriptors of a few KB, not models; the error is one of reading, or
// of the context.
func (c *Collection) Spaces(ctx context.Context) ([]SpaceInfo, error) {
	c = c.orNone()
	var all []SpaceInfo
	err := c.read(func(v *state.View, cv *state.CollectionView) error {
		for i := range cv.Spaces {
			if err := ctx.Err(); err != nil {
				return err
			}
			info, err := spaceInfo(cv, v.Snap, &cv.Spaces[i])
			if err != nil {
				return err
			}
			all = append(all, *info)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// spaceInfo describes one space of a view; it reads the report of its training.
func spaceInfo(cv *state.CollectionView, r pebble.Reader, sv *state.SpaceView) (*SpaceInfo, error) {
	sp := sv.Space
	info := &SpaceInfo{
		Space: Space(sp.ID), State: SpaceStandby, Previous: sp.ID == cv.Previous,
		Parent: Space(sp.Parent), Created: sp.Created, Bits: sp.Bits, Revision: sp.Revision,
		Items: sv.Coded, Taught: int(sv.Numbers.Taught),
		Pending: int(sv.Pending.GetCardinality()), Recode: int(sv.Recode.GetCardinality()),
		ModelBytes: sp.Model.Bytes, StatisticsBytes: sp.Statistics.Bytes,
		Revisions: []report.RevisionInfo{},
	}
	switch {
	case sv.Numbers.Building:
		info.State = SpaceBuilding
		if below := uint32(sv.Numbers.Built); below > 0 {
			info.Built = int(cv.Live.Rank(below - 1))
		}
	case sp.ID == cv.Active:
		info.State = SpaceActive
	}
	for i := range sv.Sets {
		info.Codes += sv.Sets[i].Codes
		if t, is := sv.Sets[i].Modality(); is {
			info.Views = append(info.Views, cv.Modalities[t].Name)
		}
	}
	if sp.Learned == nil {
		return info, nil
	}
	report, err := spaces.ReadReport(r, cv.ID, sp.ID)
	if err != nil {
		return nil, err
	}
	if report != nil {
		if err := json.Unmarshal(report, &info.Training); err != nil {
			return nil, fault.Corrupt(err, "report of space %d", sp.ID)
		}
	}
	if info.Checksum, err = record.Checksum(r, codec.NumberKey(codec.KindModel, cv.ID, sp.ID), 0, sp.Model); err != nil {
		return nil, fault.ReadError(err, "model of space %d", sp.ID)
	}
	info.Revisions, err = revisionInfos(sv, r, cv.ID, info)
	return info, err
}

// revisionInfos tells of the revisions of a space that are kept.
func revisionInfos(sv *state.SpaceView, r pebble.Reader, collection uint32, of *SpaceInfo) ([]report.RevisionInfo, error) {
	infos := []report.RevisionInfo{}
	for _, d := range sv.Revisions {
		info := d.RevisionInfo
		if info.Bytes, info.Checksum = of.ModelBytes, of.Checksum; d.Model.Chunks > 0 {
			var err error
			info.Bytes = d.Model.Bytes
			if info.Checksum, err = record.Checksum(r, codec.RevisionPrefix(collection, uint32(of.Space), d.Revision), 1, d.Model); err != nil {
				return nil, fault.ReadError(err, "revision %d of space %d", d.Revision, of.Space)
			}
		}
		infos = append(infos, info)
	}
	return infos, nil
}
