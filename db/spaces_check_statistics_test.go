package db_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/internal/record"
)

// A sums is A, B and n of one modality.
type sums struct {
	k    int
	n    int64
	a, b []float64
}

// checkStatistics checks that what is stored, with what has been taught since and
// without what has gone since, is the sum over all rows that have taught.
func (k *spaceCheck) checkStatistics(c record.Chunked) error {
	b, err := whole(k.statistics, 0, c)
	if err != nil {
		return err
	}
	got, err := k.readSums(b)
	if err != nil {
		return err
	}
	want := make([]sums, len(got))
	for t := range got {
		want[t] = sums{k: got[t].k, a: make([]float64, len(got[t].a)), b: make([]float64, len(got[t].b))}
	}
	for _, row := range slices.Sorted(maps.Keys(k.lessons)) {
		l, _ := codec.DecodeLesson(k.bits, k.lessons[row])
		if err := k.add(want, l, k.c.features[row], 1); err != nil {
			return err
		}
		if uint64(l.Revision) > k.n.Checkpoint {
			if err := k.add(got, l, k.c.features[row], 1); err != nil {
				return err
			}
		}
	}
	for number, value := range k.outbox {
		d, err := codec.DecodeDeparture(k.bits, value)
		if err != nil {
			return fmt.Errorf("departure %d: %w", number, err)
		}
		if uint64(d.Revision) > k.n.Checkpoint {
			continue
		}
		features := map[uint16][]byte{}
		for _, f := range d.Features {
			features[f.Modality] = f.Record
		}
		if err := k.add(got, d.Lesson, features, -1); err != nil {
			return fmt.Errorf("departure %d: %w", number, err)
		}
	}
	for t := range got {
		g, w := got[t], want[t]
		if da, dab := difference(g.a, w.a), difference(g.b, w.b); g.n != w.n || da > 1e-9 || dab > 1e-9 {
			return fmt.Errorf("modality %d of the model: %d items, %d have taught; A is off by %.3g, B by %.3g (checkpoint %d, %d lessons, %d in the outbox)",
				t, g.n, w.n, da, dab, k.n.Checkpoint, len(k.lessons), len(k.outbox))
		}
	}
	return nil
}

// readSums reads statistics byte by byte as the description of the format says.
func (k *spaceCheck) readSums(b []byte) ([]sums, error) {
	if len(b) < 12 || string(b[:4]) != "FDHS" {
		return nil, errors.New("no statistics")
	}
	b = b[8 : len(b)-4]
	u := func(n int) uint64 {
		var word [8]byte
		copy(word[:], b[:n])
		b = b[n:]
		return binary.LittleEndian.Uint64(word[:])
	}
	u(8) // fingerprint
	q := int(u(4))
	var out []sums
	for range u(4) {
		name := u(2)
		b = b[name:]
		s := sums{k: int(u(4)), n: int64(u(8))}
		for range s.k * (s.k + 1) / 2 {
			s.a = append(s.a, math.Float64frombits(u(8)))
		}
		for range q * s.k {
			s.b = append(s.b, math.Float64frombits(u(8)))
		}
		out = append(out, s)
	}
	if q != k.bits || len(out) != len(k.modalities) || len(b) > 0 {
		return nil, fmt.Errorf("%d bits, %d modalities, %d bytes are left", q, len(out), len(b))
	}
	return out, nil
}

// add adds what a row teaches with its features, times sign.
func (k *spaceCheck) add(to []sums, l codec.Lesson, features map[uint16][]byte, sign float64) error {
	x, err := k.vectors(features)
	if err != nil {
		return err
	}
	m := k.models[1] // all revisions have its maps
	size := codec.Bytes(k.bits)
	for t := range x {
		if !x[t].Present() {
			continue
		}
		phi := make([]float32, m.Features(t))
		if err := m.NewEncoder().MapVector(phi, t, x[t]); err != nil {
			return err
		}
		code := l.Codes
		if len(code) > size {
			code = code[t*size:]
		}
		s := &to[t]
		s.n += int64(sign)
		at := 0
		for i, p := range phi {
			for _, r := range phi[:i+1] {
				s.a[at] += sign * float64(p) * float64(r)
				at++
			}
		}
		for j := range k.bits {
			h := -sign
			if code[j/8]>>(j%8)&1 == 1 {
				h = sign
			}
			for i, p := range phi {
				s.b[j*len(phi)+i] += h * float64(p)
			}
		}
	}
	return nil
}

// difference returns how far x is from y, relative to y or to 1, in the Frobenius norm.
func difference(x, y []float64) float64 {
	d, n := 0.0, 1.0
	for i := range x {
		d += (x[i] - y[i]) * (x[i] - y[i])
		n += y[i] * y[i]
	}
	return math.Sqrt(d / n)
}
