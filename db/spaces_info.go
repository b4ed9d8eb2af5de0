package db

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
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
	Revisions []RevisionInfo `json:"revisions"`
}

// RevisionInfo is what there is to tell of a revision of a space: of revision 1, which
// is the model as it was trained, or of what an update has made of the projections.
type RevisionInfo struct {
	Revision uint32    `json:"revision"`
	Parent   uint32    `json:"parent,omitempty"` // that it was made from; 0: none
	Created  time.Time `json:"created"`
	Pinned   bool      `json:"pinned,omitempty"` // it is kept however old it gets

	// As in Update: who taught, "restored" where the revision has the projections of its
	// parent; which modality led or was tried for items without labels; and why these
	// were adopted or not. Empty of revision 1.
	Teacher string `json:"teacher,omitempty"`
	Lead    string `json:"lead,omitempty"`
	Reason  string `json:"reason,omitempty"`

	// Items that have taught since the revision before, with known labels and without,
	// and those whose teaching was taken back.
	Items      int `json:"items"`
	Labelled   int `json:"labelled"`
	Unlabelled int `json:"unlabelled"`
	Forgotten  int `json:"forgotten"`

	// Residual says, by modality, how well the projections fit all that have taught
	// (model.Residual): 0 where they give every code, 1 where they say nothing.
	Residual map[string]float64 `json:"residual,omitempty"`
	// Drift says how far the items that came were from the projections before they
	// taught; of revision 1 how far those are that it was trained on, or that had taught
	// when Reindex made it. Nil where nothing could be measured.
	Drift *Drift `json:"drift,omitempty"`

	Bytes    int64  `json:"bytes,omitempty"`    // of its model, as it is stored
	Checksum string `json:"checksum,omitempty"` // CRC-32C of that, 8 hexadecimal digits
}

// Spaces tells of all code spaces of the collection, by ascending number, and of the
// revisions of each that are kept. Collections of snapshots tell of those that there
// were. It reads descriptors of a few KB, not models; the error is one of reading, or
// of the context.
func (c *Collection) Spaces(ctx context.Context) ([]SpaceInfo, error) {
	c = c.orNone()
	var all []SpaceInfo
	err := c.read(func(v *view, cv *collectionView) error {
		for i := range cv.spaces {
			if err := ctx.Err(); err != nil {
				return err
			}
			info, err := cv.spaceInfo(v.snap, &cv.spaces[i])
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

func (cv *collectionView) spaceInfo(r pebble.Reader, sv *spaceView) (*SpaceInfo, error) {
	sp := sv.space
	info := &SpaceInfo{
		Space: Space(sp.ID), State: SpaceStandby, Previous: sp.ID == cv.previous,
		Parent: Space(sp.Parent), Created: sp.Created, Bits: sp.Bits, Revision: sp.Revision,
		Items: sv.coded, Taught: int(sv.numbers.Taught),
		Pending: int(sv.pending.GetCardinality()), Recode: int(sv.recode.GetCardinality()),
		ModelBytes: sp.Model.Bytes, StatisticsBytes: sp.Statistics.Bytes,
		Revisions: []RevisionInfo{},
	}
	switch {
	case sv.numbers.Building:
		info.State = SpaceBuilding
		if below := uint32(sv.numbers.Built); below > 0 {
			info.Built = int(cv.live.Rank(below - 1))
		}
	case sp.ID == cv.active:
		info.State = SpaceActive
	}
	for i := range sv.sets {
		info.Codes += sv.sets[i].codes
		if t, is := sv.sets[i].modality(); is {
			info.Views = append(info.Views, cv.Modalities[t].Name)
		}
	}
	if sp.model == nil {
		return info, nil
	}
	report, err := readReport(r, cv.ID, sp.ID)
	if err != nil {
		return nil, err
	}
	if report != nil {
		if err := json.Unmarshal(report, &info.Training); err != nil {
			return nil, fault.Corrupt(err, "report of space %d", sp.ID)
		}
	}
	if info.Checksum, err = checksum(r, codec.NumberKey(codec.KindModel, cv.ID, sp.ID), 0, sp.Model); err != nil {
		return nil, fault.ReadError(err, "model of space %d", sp.ID)
	}
	info.Revisions, err = sv.revisionInfos(r, cv.ID, info)
	return info, err
}

// revisionInfos tells of the revisions of a space that are kept.
func (sv *spaceView) revisionInfos(r pebble.Reader, collection uint32, of *SpaceInfo) ([]RevisionInfo, error) {
	infos := []RevisionInfo{}
	for _, d := range sv.revisions {
		info := d.RevisionInfo
		if info.Bytes, info.Checksum = of.ModelBytes, of.Checksum; d.Model.Chunks > 0 {
			var err error
			info.Bytes = d.Model.Bytes
			if info.Checksum, err = checksum(r, codec.RevisionPrefix(collection, uint32(of.Space), d.Revision), 1, d.Model); err != nil {
				return nil, fault.ReadError(err, "revision %d of space %d", d.Revision, of.Space)
			}
		}
		infos = append(infos, info)
	}
	return infos, nil
}

// checksum returns the CRC-32C in which a stored frame ends, from its last chunk, or the
// last two.
func checksum(r pebble.Reader, prefix []byte, first uint32, c chunked) (string, error) {
	var tail []byte
	for i := c.Chunks; i > 0 && len(tail) < 4; i-- {
		value, closer, err := r.Get(binary.BigEndian.AppendUint32(slices.Clip(prefix), first+i-1))
		if err != nil {
			return "", fault.ReadError(err, "chunk %d of %d", i-1, c.Chunks)
		}
		tail = append(slices.Clone(value[max(0, len(value)-4):]), tail...)
		if err := closer.Close(); err != nil {
			return "", err
		}
	}
	if len(tail) < 4 {
		return "", fault.Corrupt(fmt.Errorf("%d bytes", c.Bytes), "checksum")
	}
	return fmt.Sprintf("%08x", binary.LittleEndian.Uint32(tail[len(tail)-4:])), nil
}
