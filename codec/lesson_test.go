package codec

import (
	"errors"
	"reflect"
	"testing"
)

func TestRetractionRoundTrip(t *testing.T) {
	lesson := Lesson{3, Taught{Codes: []byte{1, 2, 3, 4, 5, 6, 7, 8}}}
	labels := Lesson{1<<31 - 1, Taught{Labels: []uint32{0, 1, 300, 1<<32 - 1}}}
	for _, d := range []Retraction{
		{Lesson: lesson},
		{lesson, []Feature{{0, []byte{9}}}},
		{labels, []Feature{{0, []byte{9}}}},
		{Lesson{1 << 30, Taught{Codes: make([]byte, 24)}},
			[]Feature{{1, []byte{}}, {65535, []byte{1, 2, 3}}}},
	} {
		b := d.Append(nil)
		if got, err := DecodeRetraction(64, b); err != nil || !reflect.DeepEqual(*got, d) {
			t.Errorf("%+v became %+v, %v", d, got, err)
		}
		for cut := range b {
			if got, err := DecodeRetraction(64, b[:cut]); !errors.Is(err, ErrCorrupt) {
				t.Errorf("%d of %d bytes: %+v, %v", cut, len(b), got, err)
			}
		}
	}
	for name, d := range map[string]Retraction{
		"codes of another length": {Lesson: Lesson{1, Taught{Codes: []byte{1}}}},
		"no code":                 {Lesson: Lesson{1, Taught{}}},
		"a label twice":           {Lesson: Lesson{1, Taught{Labels: []uint32{5, 5}}}},
		"a modality twice":        {lesson, []Feature{{1, nil}, {1, nil}}},
	} {
		if got, err := DecodeRetraction(64, d.Append(nil)); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}
