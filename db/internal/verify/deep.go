package verify

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/model"
)

// Records may agree with each other and be wrong all the same: the features of an item may be those
// of another one. Only the model tells. Deep verification encodes every item again, with the
// revision that its code names, and compares. It reads all features, and costs about as much as
// encoding all items. Codes that no kept revision can make again are counted as unchecked, and are
// no findings.

// A verifiedItem is what the codes of an item are made of.
type verifiedItem struct {
	row     uint32
	vectors []model.Vector // by modality of the collection; none in an index-only collection
	labels  []uint32       // numbers, ascending
}

// item reads what the codes of an item are made of. An error means that it cannot be read,
// which the checks before have reported.
func (c *collectionVerifier) item(row uint32) (*verifiedItem, error) {
	rec, err := record.ReadItem(c.snap, c.Descriptor.ID, row)
	if err != nil {
		return nil, err
	}
	c.done.Records++
	it := &verifiedItem{row: row, vectors: make([]model.Vector, len(c.Modalities)), labels: rec.Labels}
	if c.IndexOnly {
		return it, nil
	}
	for t, m := range c.Modalities {
		// A search goes by the set of the modality, and so does this: features without it have been
		// reported.
		if !c.presence[t].Contains(row) {
			continue
		}
		x, found, err := record.ReadVector(c.snap, c.Descriptor.ID, row, t, m)
		if err == nil && !found {
			err = errors.New("missing")
		}
		if err != nil {
			return nil, err
		}
		c.done.Records++
		it.vectors[t] = x
	}
	return it, nil
}

// recomputedBlock is the number of items that are read before their codes are made.
const recomputedBlock = 1024

// recompute makes the codes and projections of all rows that have a code again, each with the
// revision that its code names, and compares. It gathers
// items by revision, as items of one revision are encoded together, on all cores.
func (s *spaceVerifier) recompute(codes *codeVerifier) {
	s.begin("codes made again")
	// Items that wait to be encoded, recomputedBlock at most in all revisions together.
	byRevision := map[uint32][]*verifiedItem{}
	held := 0
	flush := func(revision uint32) {
		items := byRevision[revision]
		held -= len(items)
		delete(byRevision, revision)
		s.recomputeItems(codes, revision, items)
	}
	for rows := s.coded.Iterator(); rows.HasNext() && s.err == nil; {
		row := rows.Next()
		revision := codes.rows.Get(row).revision
		it, err := s.item(row)
		if err != nil { // reported before
			s.done.CodesUnchecked++
			continue
		}
		byRevision[revision] = append(byRevision[revision], it)
		if held++; held == recomputedBlock {
			for revision := range byRevision {
				flush(revision)
			}
			s.look()
		}
	}
	for revision := range byRevision {
		flush(revision)
	}
}

// A recomputedItem is what encoding an item has given.
type recomputedItem struct {
	enc   spaces.Encoding
	fused []float64 // the projection whose signs are the code; nil for a code of labels
	err   error     // encoding has failed; the rest is zero
}

// recomputeItems makes and compares the codes of items of one revision. If the revision is not
// kept, or features are not there, only codes of labels can be compared.
func (s *spaceVerifier) recomputeItems(codes *codeVerifier, revision uint32, items []*verifiedItem) {
	if s.err != nil {
		return
	}
	sp := s.kept[revision]
	switch {
	// The revision is not kept: its projections are gone, and labels alone can be compared.
	case sp == nil:
		s.recomputeLabels(codes, items)
		return
	case s.IndexOnly:
		s.compareLabels(codes, sp, items)
		return
	}
	out := make([]recomputedItem, len(items))
	runs := (len(items) + spaces.EncodeRun - 1) / spaces.EncodeRun
	err := work.ParallelBy(s.ctx, work.All(), 1, runs, func(run int) error {
		from, to := run*spaces.EncodeRun, min((run+1)*spaces.EncodeRun, len(items))
		recomputeRun(sp, items[from:to], out[from:to])
		return nil
	})
	if err != nil {
		s.err = err
		return
	}
	for i, it := range items {
		s.compareItem(codes, it, &out[i])
	}
}

// recomputeRun makes the codes of up to spaces.EncodeRun items, in one of several goroutines.
func recomputeRun(s *spaces.Space, items []*verifiedItem, out []recomputedItem) {
	e := s.Encoders.Get().(*spaces.Encoder)
	defer s.Encoders.Put(e)
	vectors := make([][]model.Vector, len(items))
	for i, it := range items {
		vectors[i] = it.vectors
	}
	if _, err := e.Project(vectors); err != nil {
		for i := range items { // one by one, to find the item that the error is about
			if _, err := e.Project(vectors[i : i+1]); err != nil {
				out[i].err = err
				continue
			}
			recomputeItem(s, e, 0, items[i], &out[i])
		}
		return
	}
	for i, it := range items {
		recomputeItem(s, e, i, it, &out[i])
	}
}

// recomputeItem makes the codes of an item, which is number i of those that e has projected.
func recomputeItem(s *spaces.Space, e *spaces.Encoder, i int, it *verifiedItem, out *recomputedItem) {
	out.enc = s.EncodingOf(e, i, it.vectors, it.labels)
	if out.enc.Code != nil && out.enc.From != codec.ProvenanceLabels {
		// Fuse returns memory of the encoder, which the next call fills again.
		z, _ := e.Fuse(i)
		out.fused = slices.Clone(z)
	}
}

// compareItem compares the codes and the projection of an item with those that are stored.
func (s *spaceVerifier) compareItem(codes *codeVerifier, it *verifiedItem, got *recomputedItem) {
	if got.err != nil {
		s.done.CodesUnchecked++
		s.bad(rowName("item", it.row), codec.NumberKey(codec.KindItem, s.ID(), it.row), "its code cannot be made: %s", fault.Problem(got.err))
		return
	}
	if s.recode.Contains(it.row) { // its labels have changed since, as where one was merged into another
		s.done.CodesUnchecked++
	} else {
		s.done.CodesChecked++
		codes.compareCode(it.row, got.enc.Code, got.enc.From, got.fused)
	}
	s.compareProjection(it.row, got.enc.Projection)
}

// tieTolerance bounds numbers of a projection whose sign may depend on the order in which they
// were summed, as a part of the largest number: kernels for other processors sum in another
// order.
const tieTolerance = 1e-4

// compareCode compares the code of a row with the code that encoding gives, and where the two
// come from. fused is the projection whose signs the code is; nil for a code of labels.
func (c *codeVerifier) compareCode(row uint32, want codec.Code, from codec.Provenance, fused []float64) {
	x := c.rows.Get(row)
	if x == nil || x.state == carriedNone {
		return // checkUncoded has looked at that
	}
	what, key := fmt.Sprintf("code of row %d", row), c.Block(codec.KindRowCodes, row)
	if want == nil {
		c.bad(what, key, "it has one, and neither features nor labels give one")
		return
	}
	// Another provenance explains another code, so it is the one finding.
	if x.from != from {
		c.bad(what, key, "of provenance %d, not %d", x.from, from)
		return
	}
	if stored := c.codes.Get(x.number); stored == nil || !stored.there {
		return // reported before
	}
	code := c.code(codec.NewCode(c.CodeKeys.Bits), x.number)
	wrong := wrongBits(code, want, fused)
	switch {
	case wrong == 0:
	case fused == nil:
		c.bad(what, key, "it is not that of its labels: %d bits differ", wrong)
	default:
		c.bad(what, key, "it is not that of its features: %d bits differ", wrong)
	}
}

// wrongBits returns the number of bits in which code and want differ. If want is the signs of
// fused, bits whose sign may depend on rounding do not count; see tieTolerance. fused is nil
// for a code of labels, of which all bits count.
func wrongBits(code, want codec.Code, fused []float64) int {
	if fused == nil {
		return codec.Distance(code, want)
	}
	largest := 0.0
	for _, z := range fused {
		largest = max(largest, math.Abs(z))
	}
	wrong := 0
	for j, z := range fused {
		if code.Bit(j) != want.Bit(j) && math.Abs(z) > tieTolerance*largest {
			wrong++
		}
	}
	return wrong
}

// compareProjection compares the stored projection of a row with the one that encoding gives,
// nil for none. Rows ascend within a revision, so it keeps the block that it has read last.
func (s *spaceVerifier) compareProjection(row uint32, want []byte) {
	key := s.projectionKey(row)
	if s.lost(key) {
		return
	}
	what := fmt.Sprintf("projection of row %d", row)
	if !bytes.Equal(s.lastProjections.key, key) {
		b, err := record.Get(s.snap, key)
		var block codec.Block
		if err == nil && b != nil {
			block, err = codec.DecodeBlock(b)
		}
		if err != nil {
			return // reported before
		}
		s.lastProjections.key, s.lastProjections.block = key, block
	}
	entry, found := s.lastProjections.block.Lookup(byte(row))
	switch {
	case !found && want != nil:
		s.bad(what, key, "missing, and its features give one")
	case found && want == nil:
		s.bad(what, key, "its features give none")
	case !found || len(entry) != len(want):
		// There should be none, or checkProjection has reported the length.
	case !sameProjection(entry, want):
		s.bad(what, key, "it is not that of its features")
	}
}

// sameProjection reports whether two stored projections of the same length are the same but
// for rounding, which may move a number by one. It leaves out the length, which the first four
// bytes are: checkProjection has compared it with the numbers.
func sameProjection(entry, want []byte) bool {
	for j := 4; j < len(want); j++ {
		if d := int(int8(entry[j])) - int(int8(want[j])); d < -1 || d > 1 {
			return false
		}
	}
	return true
}

// recomputeLabels looks at items whose revision is not kept. All revisions of a space give the
// same codes to labels, so it compares with the present one. An item with these codes counts as
// checked, any other as unchecked: its code cannot be made again.
func (s *spaceVerifier) recomputeLabels(codes *codeVerifier, items []*verifiedItem) {
	want, code := codec.NewCode(s.Bits()), codec.NewCode(s.Bits())
	for _, it := range items {
		same := s.Learned.LabelCode(want, it.labels)
		x := codes.rows.Get(it.row)
		stored := codes.codes.Get(x.number)
		if same && x.from == codec.ProvenanceLabels && stored != nil && stored.there && slices.Equal(codes.code(code, x.number), want) {
			s.done.CodesChecked++
		} else {
			s.done.CodesUnchecked++
		}
	}
}
