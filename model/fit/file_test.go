package fit

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/internal/wire"
)

// fileModel trains on items of several labels.
func fileModel(t testing.TB, opt Options) *Result {
	t.Helper()
	cfg := synth.Config{Items: 120, Classes: 12, Dims: []int{8, 5}, LabelsPerItem: 2, Missing: .2}
	return trained(t, synth.Pairs(cfg), opt)
}

// namesOf returns a name for each label of a model.
func namesOf(m *model.Model) (names []string) {
	for _, l := range m.Labels() {
		names = append(names, fmt.Sprint("label ", l))
	}
	return names
}

// A model that has been in a file, with other ids for its labels, gives the labels of the same names
// the same codes, and vectors the same projections.
func TestFileGivesLabelsOtherIDs(t *testing.T) {
	for name, opt := range map[string]Options{
		"labels":   {Bits: 16, Anchors: 20, Aim: model.AimLabels},
		"codes":    {Bits: 16, Anchors: 20, Aim: model.AimCodes},
		"weighted": {Bits: 8, Anchors: 20, LabelEmbedding: true},
	} {
		t.Run(name, func(t *testing.T) {
			m := fileModel(t, opt).Model
			stopIf(t, m.Aim().String() != name, "the aim is %v", m.Aim())
			f := need(NewFile(m, namesOf(m), &Report{Bits: 16, Seconds: map[string]float64{"total": 3},
				MemoryBytes: 9}))(t)
			b := need(f.MarshalBinary())(t)
			back := need(UnmarshalFile(b))(t)
			again, _ := back.MarshalBinary()
			failIf(t, !bytes.Equal(b, again), "the bytes differ")
			r := back.Report()
			failIf(t, r.Bits != 16 || r.Seconds != nil || r.MemoryBytes != 0, "%+v", r)
			labels := m.Labels()
			ids := make([]uint32, len(labels)) // the order is turned round
			for i := range ids {
				ids[i] = uint32(1000 - 7*i)
			}
			other := need(back.Model(ids))(t)
			want, got := codec.NewCode(m.Bits()), codec.NewCode(m.Bits())
			for i := range labels {
				for j := range i + 1 {
					set := slices.Compact([]uint32{labels[j], labels[i]})
					image := slices.Compact(slices.Sorted(slices.Values([]uint32{ids[j], ids[i]})))
					failIf(t, !m.LabelCode(want, set) || !other.LabelCode(got, image) ||
						!slices.Equal(want, got), "labels %v have code %x, and %v %x", set, want, image, got)
				}
			}
			same, err := back.Model(labels) // projections, weights and all
			must(t, err)
			was, _ := m.MarshalBinary()
			is, _ := same.MarshalBinary()
			failIf(t, !bytes.Equal(was, is) || same.Fingerprint() != m.Fingerprint(),
				"with its own ids it is another model")
		})
	}
}

// A label without a name is left out, and the others have the codes that they had.
func TestFileWithoutALabel(t *testing.T) {
	m := fileModel(t, Options{Bits: 16, Anchors: 20}).Model
	names := namesOf(m)
	names[1] = ""
	f := need(NewFile(m, names, nil))(t)
	ids := slices.Delete(m.Labels(), 1, 2)
	other := need(f.Model(ids))(t)
	want, got := codec.NewCode(16), codec.NewCode(16)
	failIf(t, other.LabelCode(got, m.Labels()[1:2]), "the label is known")
	for _, l := range ids {
		failIf(t, !m.LabelCode(want, []uint32{l}) || !other.LabelCode(got, []uint32{l}) ||
			!slices.Equal(want, got), "label %d: %x became %x", l, want, got)
	}
}

// Whoever changes the bytes of a model raises Version: testdata/file.model is the file of fileModel with 16
// bits, 20 anchors, namesOf and its report, and is read as the model that it was.
func TestGoldenFile(t *testing.T) {
	b := need(os.ReadFile("testdata/file.model"))(t)
	f := need(UnmarshalFile(b))(t)
	labels := f.Labels()
	failIf(t, len(labels) != 12 || labels[0] != "label 0" || f.Report().TrainItems != 120 ||
		len(f.Modalities()) != 2, "%q, %+v, %v", labels, f.Report(), f.Modalities())
	ids := make([]uint32, len(labels))
	for i := range ids {
		ids[i] = uint32(i)
	}
	m, err := f.Model(ids)
	failIf(t, err != nil || m.Bits() != 16 || m.Fingerprint() != 0x9bec0c423cbef63f, "%x, %v",
		m.Fingerprint(), err)
}

func TestFileRefuses(t *testing.T) {
	m := fileModel(t, Options{Bits: 16, Anchors: 20}).Model
	names := namesOf(m)
	for what, wrong := range map[string][]string{
		"too few": names[1:], "twice": slices.Repeat(names[:1], len(names)),
		"no UTF-8": slices.Repeat([]string{"\xff"}, len(names)),
		"long":     slices.Repeat([]string{strings.Repeat("x", wire.MaxName+1)}, len(names)),
		"none":     make([]string, len(names)),
	} {
		_, err := NewFile(m, wrong, nil)
		failIf(t, !like(err, model.ErrOption), "%s: %v", what, err)
	}
	f := need(NewFile(m, names, nil))(t)
	for _, ids := range [][]uint32{nil, make([]uint32, len(names)), {1}} {
		_, err := f.Model(ids)
		failIf(t, !like(err, model.ErrOption), "ids %v: %v", ids, err)
	}
	b := need(f.MarshalBinary())(t)
	for cut := range 200 {
		_, err := UnmarshalFile(b[:len(b)*cut/200])
		failIf(t, !like(err, codec.ErrCorrupt), "%d of %d bytes: %v", len(b)*cut/200, len(b), err)
	}
	newer := bytes.Clone(b)
	newer[4]++
	var format *codec.FormatError
	_, err := UnmarshalFile(newer)
	failIf(t, !errors.As(err, &format) || format.Found != wire.Version+1, "%v", err)
	need(UnmarshalFile(append(wire.NewWriter(fileMagic).B, b[8:]...)))(t)
	model := need(m.MarshalBinary())(t)
	errorIs(t, errOf(UnmarshalFile(model)), codec.ErrCorrupt)
}

func FuzzFile(f *testing.F) {
	m := fileModel(f, Options{Bits: 16, Anchors: 4, Sweeps: 1}).Model
	file := need(NewFile(m, namesOf(m), nil))(f)
	b := need(file.MarshalBinary())(f)
	f.Add(b[8 : len(b)-4])
	f.Add([]byte{1, 0, 0, 0, 1, 0, 'x', 2, 0, 0, 0, '{', '}'})
	f.Fuzz(func(t *testing.T, body []byte) {
		w := wire.NewWriter(fileMagic)
		w.B = append(w.B, body...)
		got, err := UnmarshalFile(w.Finish())
		if err != nil {
			return
		}
		back := need(UnmarshalFile(need(got.MarshalBinary())(t)))(t)
		failIf(t, !slices.Equal(back.Labels(), got.Labels()), "%v", back)
	})
}
