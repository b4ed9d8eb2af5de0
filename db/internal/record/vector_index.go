package record

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/internal/cells"
)

// An index of vectors tells in which cell the vector of a row is, and roughly where there (package cells). It
// knows the rows below Covered, except stale rows, whose vector has changed since. A search finds other rows
// among the vectors themselves, so a write stores next to nothing of an index: at most that a row is stale.
// Rows are added to the index many at a time (state.Database.TakeIn).

// A VectorIndex is the descriptor of an index of vectors as it is stored, in JSON.
type VectorIndex struct {
	ID       uint32 `json:"id"` // unique in the collection, from 1; never used again
	Modality int    `json:"modality"`
	Dim      int    `json:"dim"`              // of the modality
	Metric   Metric `json:"metric,omitempty"` // that makes vectors near, as a modality has it
	Seed     uint64 `json:"seed"`             // of the rotation
	Created  string `json:"created"`          // RFC 3339
	Covered  uint64 `json:"covered"`          // the row that the index ends at
	Complete bool   `json:"complete"`         // its training has ended: searches use it
	Churn    int    `json:"churn,omitempty"`  // rows that it has taken in since: new, changed and gone

	Recall float64      `json:"recall,omitempty"` // recall of searches that name none
	Curve  []RecallAt   `json:"curve,omitempty"`  // measurements; ascending by K, then Reach
	Report *IndexReport `json:"report,omitempty"`
}

// RecallAt is a recall that was measured with items as queries: the part of the K nearest items that a search
// finds with a reach (see cells.Probes).
type RecallAt struct {
	K      int     `json:"k"`
	Reach  float64 `json:"reach"`
	Recall float64 `json:"recall"`
	Error  float64 `json:"error"` // standard error of Recall, as queries differ

	// Worst is the recall of that sixteenth of the queries, by dot of those 32, by the distance of the K-th
	// nearest, which finds least, without its worst one.
	Worst float64 `json:"worst"`

	// Cells that a query has looked into, and their entries, on average.
	Probes  float64 `json:"probes"`
	Entries float64 `json:"entries"`
}

// An IndexReport has figures about a training of an index.
type IndexReport struct {
	Sample  int                `json:"sample"`  // vectors that the centres were found from
	Queries int                `json:"queries"` // that the curve was measured with
	Items   int                `json:"items"`   // vectors of the modality at that time
	Seconds map[string]float64 `json:"seconds"`
}

// Encode returns the descriptor in the form in which DecodeIndex reads it.
func (x *VectorIndex) Encode() ([]byte, error) { return json.Marshal(x) }

// DecodeIndex reads and checks the descriptor of an index with this number.
func DecodeIndex(b []byte, d *Descriptor, id uint32) (*VectorIndex, error) {
	x := new(VectorIndex)
	if err := json.Unmarshal(b, x); err != nil {
		return nil, err
	}
	switch {
	case x.ID != id || id == 0 || id > d.Indexes:
		return nil, fmt.Errorf("of index %d, of %d that there have been", x.ID, d.Indexes)
	case x.Modality < 0 || x.Modality >= len(d.Modalities) || d.Modalities[x.Modality].Dim != x.Dim ||
		d.Modalities[x.Modality].Sparse:
		return nil, fmt.Errorf("of modality %d with %d dimensions", x.Modality, x.Dim)
	case x.Metric != "" && x.Metric != Dot && x.Metric != L2:
		return nil, fmt.Errorf("of metric %q", x.Metric)
	case x.Covered > MaxRows || x.Churn < 0:
		return nil, fmt.Errorf("it covers %d rows, and has taken in %d", x.Covered, x.Churn)
	case x.Recall < 0 || x.Recall > 1 || x.Complete && len(x.Curve) == 0 || x.Report == nil:
		return nil, fmt.Errorf("recall %v, %d points measured", x.Recall, len(x.Curve))
	}
	for i, p := range x.Curve {
		if p.K < 1 || !(p.Reach >= 0 && p.Reach <= 2) || !(p.Recall >= 0 && p.Recall <= 1) ||
			!(p.Worst >= 0) || i > 0 && p.K < x.Curve[i-1].K {
			return nil, fmt.Errorf("recall %v of %d at reach %v", p.Recall, p.K, p.Reach)
		}
	}
	return x, nil
}

// AppendCell appends the stored form of a cell: its number, so that no cell can be taken for another, its
// spread and load, and the coordinates of its centre; float32, little-endian.
func AppendCell(dst []byte, cell uint32, c cells.Cell) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, cell)
	dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(c.Spread))
	dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(c.Load))
	for _, v := range c.Centre {
		dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(v))
	}
	return dst
}

// DecodeCell reads a cell with this number, of so many coordinates.
func DecodeCell(b []byte, cell uint32, size int) (c cells.Cell, err error) {
	const head = 12
	if len(b) != head+4*size {
		return c, fmt.Errorf("%d bytes, not %d", len(b), head+4*size)
	}
	if of := binary.LittleEndian.Uint32(b); of != cell {
		return c, fmt.Errorf("it is of cell %d", of)
	}
	numbers := make([]float32, 2+size)
	for i := range numbers {
		numbers[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4+4*i:]))
		if v := float64(numbers[i]); math.IsNaN(v) || math.IsInf(v, 0) {
			return c, errors.New("a number that is not finite")
		}
	}
	if c = (cells.Cell{Spread: numbers[0], Load: numbers[1], Centre: numbers[2:]}); c.Spread < 0 ||
		c.Load < 0 {
		return c, errors.New("a spread or load below 0")
	}
	return c, nil
}

// Geometry returns the coordinates in which the index compares vectors.
func (x *VectorIndex) Geometry() *cells.Geometry {
	metric := map[Metric]cells.Metric{Cosine: cells.Cosine, Dot: cells.Dot, L2: cells.L2}[x.Metric.OrCosine()]
	return cells.NewGeometry(metric, x.Dim, x.Seed)
}

// ReadCentres reads the centres of an index: none where they have not been found yet.
func (x *VectorIndex) ReadCentres(r pebble.Reader, collection uint32) (*cells.Centres, error) {
	g := x.Geometry()
	var all []cells.Cell
	err := ForEach(r, codec.NumberKey(codec.KindCentre, collection, x.ID), func(key, value []byte) error {
		cell := codec.LastNumber(key)
		c, err := DecodeCell(value, cell, g.Size())
		if err == nil && cell >= MaxCells {
			err = fmt.Errorf("cell %d", cell)
		}
		if err != nil {
			return fault.Corrupt(err, "centre %d of index %d", cell, x.ID)
		}
		for int(cell) >= len(all) {
			all = append(all, cells.Cell{})
		}
		all[cell] = c
		return nil
	})
	if err == nil && len(all) == 0 && (x.Complete || x.Covered > 0) {
		err = fault.Corrupt(errors.New("it has none"), "centres of index %d", x.ID)
	}
	if err != nil {
		return nil, err
	}
	return cells.NewCentres(g, all), nil
}

// MaxCells bounds the number of a cell.
const MaxCells = 1 << 22

// ReadStale reads the rows whose entry is out of date.
func (x *VectorIndex) ReadStale(r pebble.Reader, collection uint32) (*roaring.Bitmap, error) {
	rows := roaring.New()
	err := ForEach(r, codec.NumberKey(codec.KindStale, collection, x.ID), func(key, value []byte) error {
		container := codec.LastNumber(key)
		if container > math.MaxUint16 {
			return fault.Corrupt(fmt.Errorf("container %d", container), "rows %x", key)
		}
		return AddRows(rows, key, value, uint16(container))
	})
	return rows, err
}

// EachEntry calls f with the entry of each row, ascending; its code is in memory of the store. c has the
// cells of the index.
func (x *VectorIndex) EachEntry(r pebble.Reader, collection uint32, c *cells.Centres,
	f func(row uint32, e cells.Entry) error) error {
	return ForEachEntry(r, codec.NumberKey(codec.KindEntries, collection, x.ID),
		func(row uint32, b []byte) error {
			e, err := cells.DecodeEntry(b, x.Dim)
			if err == nil && (c.Of(e.Cell) == nil || uint64(row) >= x.Covered) {
				err = fmt.Errorf("in cell %d of row %d; the index covers %d rows", e.Cell, row, x.Covered)
			}
			if err != nil {
				return fault.Corrupt(err, "entry of row %d in index %d", row, x.ID)
			}
			return f(row, e)
		})
}

// Reach returns the least measured reach whose recall of the k nearest, less its standard error, is at least
// recall; and that recall. If k was not measured it uses the next larger k, or the largest. The reach is at
// least what fewer neighbours need, whose recall may be short by its standard error: a query unlike the items
// has its nearest in more cells than they have. If no reach has the recall, Reach returns the largest one and
// its smaller recall.
func (x *VectorIndex) Reach(k, recall float64) (reach, expected float64) {
	for points := range x.measured() {
		last := float64(points[0].K) >= k || points[0].K == x.Curve[len(x.Curve)-1].K
		r, expected, enough := leastReach(points, recall, last)
		if reach = max(reach, r); last || !enough {
			return reach, expected
		}
	}
	return 0, 1
}

// measured yields the points of each k, which ascends.
func (x *VectorIndex) measured() iter.Seq[[]RecallAt] {
	return func(yield func([]RecallAt) bool) {
		for from, i := 0, 0; i < len(x.Curve); i++ {
			if i+1 == len(x.Curve) || x.Curve[i+1].K > x.Curve[i].K {
				if !yield(x.Curve[from : i+1]) {
					return
				}
				from = i + 1
			}
		}
	}
}

// Looks returns about how many cells searches for the k nearest look into, with a reach that was
// measured, and how many entries these have. Between two k that were measured, and beyond
// the last ones, they are powers of k.
func (x *VectorIndex) Looks(k, reach float64) (probes, entries float64) {
	var before, p RecallAt
	for points := range x.measured() {
		i := slices.IndexFunc(points, func(p RecallAt) bool { return p.Reach >= reach })
		if i < 0 {
			i = len(points) - 1
		}
		before, p = p, points[i]
		if before.K > 0 && float64(p.K) >= k {
			break
		}
	}
	if before.K == 0 || before.Probes == 0 {
		return p.Probes, p.Entries
	}
	// k is of k1 what k1 is of k0, to this power.
	power := math.Log(k/float64(p.K)) / math.Log(float64(p.K)/float64(before.K))
	probes = p.Probes * math.Pow(p.Probes/before.Probes, power)
	if before.Entries > 0 {
		entries = p.Entries * math.Pow(p.Entries/before.Entries, power)
	}
	return probes, entries
}

// leastReach looks among the points of one k, and reports whether one is enough. It does not interpolate,
// because recall rises in steps as cells are added. With surely the recall less its standard error must be
// enough, and also, as far as can be told, for queries whose neighbours are farther apart or closer together
// than for most. Then it also takes a larger reach that costs next to nothing, because a sample of items has
// few of any rare kind.
func leastReach(points []RecallAt, recall float64, surely bool) (reach, expected float64, enough bool) {
	const nothing = 1.1
	for i, p := range points {
		switch {
		case !surely && p.Recall+p.Error >= recall:
			return p.Reach, p.Recall, true
		case surely && min(p.Recall-p.Error, p.Worst) >= recall:
			for _, q := range points[i:] {
				if q.Entries <= nothing*points[i].Entries && q.Recall >= p.Recall {
					p = q
				}
			}
			return p.Reach, p.Recall, true
		}
	}
	last := points[len(points)-1]
	return last.Reach, min(last.Recall-last.Error, last.Worst), false
}
