package state

import (
	"encoding/json"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/model"
)

// SpaceInfo describes a space of the collection. It reads the report of its training.
func (cv *CollectionView) SpaceInfo(r pebble.Reader, sv *SpaceView) (*report.SpaceInfo, error) {
	sp := sv.Space
	info := &report.SpaceInfo{
		Space: report.Space(sp.ID), State: report.SpaceStandby, Previous: sp.ID == cv.Previous,
		Parent: report.Space(sp.Parent), Created: sp.Created, Bits: sp.Bits, Revision: sp.Revision,
		Items: sv.Codes.Coded, Taught: int(sv.Numbers.Taught),
		Pending: int(sv.Pending.GetCardinality()), Recode: int(sv.Recode.GetCardinality()),
		ModelBytes: sp.Model.Bytes, StatisticsBytes: sp.Statistics.Bytes,
		Revisions: []report.RevisionInfo{},
	}
	switch {
	case sv.Numbers.Building:
		info.State = report.SpaceBuilding
		if below := uint32(sv.Numbers.Built); below > 0 {
			info.Built = int(cv.Live.Rank(below - 1))
		}
	case sp.ID == cv.Active:
		info.State = report.SpaceActive
	}
	info.Codes = sv.Codes.Codes
	if sp.Learned == nil {
		return info, nil
	}
	if !sp.Learned.LabelFree() {
		info.Aim = sp.Learned.Aim().String()
	}
	if sp.HasStatistics() && sp.Learned.Aim() != model.AimCodes {
		prior := sp.Learned.Prior()
		info.Prior = &prior
	}
	trained, err := spaces.ReadReport(r, cv.ID, sp.ID)
	if err != nil {
		return nil, err
	}
	if trained != nil {
		if err := json.Unmarshal(trained, &info.Training); err != nil {
			return nil, fault.Corrupt(err, "report of space %d", sp.ID)
		}
		if info.Training != nil {
			info.Training.Aim = sp.Learned.Aim() // reports of earlier versions have none
		}
	}
	if info.Checksum, err = record.Checksum(r, codec.NumberKey(codec.KindModel, cv.ID, sp.ID), 0, sp.Model); err != nil {
		return nil, fault.ReadError(err, "model of space %d", sp.ID)
	}
	info.Revisions, err = revisionInfos(sv, r, cv.ID, info)
	return info, err
}

// revisionInfos describes the stored revisions of a space.
func revisionInfos(sv *SpaceView, r pebble.Reader, collection uint32, of *report.SpaceInfo) ([]report.RevisionInfo, error) {
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
