package files

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/files/npy"
)

func TestReadCodes(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, bits := range []int{8, 64, 72, 128, 4096} {
		const n = 50
		data := make([]byte, n*bits/8)
		columns := make([]byte, len(data))
		for i := range data {
			data[i] = byte(rng.Uint32())
			row, col := i/(bits/8), i%(bits/8)
			columns[col*n+row] = data[i]
		}
		shape := fmt.Sprintf("(%d, %d)", n, bits/8)
		path := filepath.Join(t.TempDir(), "codes.npy")
		for _, file := range [][]byte{
			build(t, 1, "|u1", "False", shape, data),
			build(t, 1, "|u1", "True", shape, columns),
		} {
			check(t, os.WriteFile(path, file, 0o666))
			codes, err := npy.ReadCodes(path)
			if err != nil || codes.Len() != n || codes.Bits() != bits {
				t.Fatalf("%d codes of %d bits: %v", codes.Len(), codes.Bits(), err)
			}
			for i := range n {
				// Bit j is bit j mod 8 of byte j/8.
				for j := range bits {
					if want := data[i*bits/8+j/8]>>(j%8)&1 == 1; codes.At(i).Bit(j) != want {
						t.Fatalf("%d bits: bit %d of code %d is %v", bits, j, i, !want)
					}
				}
			}
		}
	}
}

func TestReadCodesEmpty(t *testing.T) {
	codes, err := npy.CodesOf(memory("c.npy", build(t, 1, "|u1", "False", "(0, 16)", []byte{})))
	if err != nil || codes.Len() != 0 || codes.Bits() != 128 {
		t.Errorf("%d codes of %d bits, %v", codes.Len(), codes.Bits(), err)
	}
}

func TestReadCodesRejects(t *testing.T) {
	for _, c := range []struct {
		descr, shape string
		values       any
		want         string
	}{
		{"|i1", "(1, 8)", make([]int8, 8),
			"c.npy: holds int8 where codes are uint8, 8 bits a byte: make it with numpy.packbits(bits, axis=1, bitorder='little')"},
		{"|b1", "(1, 8)", make([]bool, 8), "c.npy: holds bool where codes are uint8"},
		{"<u2", "(1, 8)", make([]uint16, 8), "c.npy: holds uint16 where codes are uint8"},
		{"|u1", "(8,)", make([]uint8, 8),
			"c.npy: has one dimension where codes have shape (n, bits/8): reshape it"},
		{"|u1", "(1, 513)", make([]uint8, 513), "c.npy: has 513 columns of 8 bits: " + codec.CheckBits(
			4104).Error()},
		{"|u1", "(1, 0)", []uint8{}, "c.npy: has no columns"},
		{"|u1", "(2, 8)", make([]uint8, 15),
			"c.npy: holds 15 bytes of data where the header's shape (2, 8) uint8 needs 16: the file is truncated"},
	} {
		t.Run(c.descr+c.shape, func(t *testing.T) {
			_, err := npy.CodesOf(memory("c.npy", build(t, 1, c.descr, "False", c.shape, c.values)))
			wantError(t, err, c.want)
		})
	}
	_, err := npy.ReadCodes("c.csv")
	wantError(t, err, `c.csv: ".csv" is not an extension that tells the format: codes are read from .npy files`)
}

// Codes that are exported are imported again.
func TestCodesRoundTrip(t *testing.T) {
	var file bytes.Buffer
	w := must(npy.NewWriter[uint8](&file, 3, 9))(t)
	codes := codec.NewCodes(72, 3)
	for i := range 3 {
		c := codec.NewCode(72)
		c.Flip(i)
		c.Flip(71 - i)
		codes.Append(c)
		check(t, w.Write(c.AppendBytes(nil, 72)))
	}
	check(t, w.Close())
	back, err := npy.CodesOf(memory("c.npy", file.Bytes()))
	if err != nil || fmt.Sprint(back.Slice(0, 3)) != fmt.Sprint(codes.Slice(0, 3)) {
		t.Errorf("%v, %v", back, err)
	}
}
