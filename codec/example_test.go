package codec_test

import (
	"fmt"

	"github.com/fddhdb/fddhdb/codec"
)

// A code is made of signs, stored as bytes, and compared by Hamming distance.
func Example() {
	a := codec.PackSigns(codec.NewCode(8), []float64{1, -1, 0, -2, 3, -1, -1, -1})
	b, err := codec.CodeFromBytes([]byte{0b0001_0001})
	if err != nil {
		panic(err)
	}
	fmt.Printf("%x %x %d\n", a.AppendBytes(nil, 8), b.AppendBytes(nil, 8), codec.Distance(a, b))

	// Many at once: the distances of a query to an array of codes.
	codes := codec.NewCodes(8, 2)
	codes.Append(a)
	codes.Append(b)
	distances := make([]uint16, codes.Len())
	codec.Distances(distances, b, codes.Slice(0, codes.Len()))
	fmt.Println(distances)
	// Output:
	// 15 11 1
	// [1 0]
}
