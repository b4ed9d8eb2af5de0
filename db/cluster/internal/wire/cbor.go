package wire

import (
	"errors"
	"fmt"

	"github.com/fxamacker/cbor/v2"
)

// version is the first byte of every message.
const version = 1

// maxElements bounds arrays and maps: the rows of the longest answer.
const maxElements = 1 << 24

var (
	encoding = must(cbor.EncOptions{
		Time: cbor.TimeRFC3339Nano, TimeTag: cbor.EncTagRequired, // so that it comes back as a time.Time
		NaNConvert: cbor.NaNConvertNone,
	}.EncMode())
	decoding = must(cbor.DecOptions{
		IntDec:            cbor.IntDecConvertSignedOrFail,
		ExtraReturnErrors: cbor.ExtraDecErrorUnknownField,
		MaxArrayElements:  maxElements,
		MaxMapPairs:       maxElements,
		MaxNestedLevels:   16,
	}.DecMode())
)

// must returns a mode. Its options are constant, so an error shows at every start of the program.
func must[M any](mode M, err error) M {
	if err != nil {
		panic(err)
	}
	return mode
}

// ErrVersion says that another version of the program wrote a message.
var ErrVersion = errors.New("written by another version of this program: use the version that has written it")

func encode(x any) ([]byte, error) {
	b, err := encoding.Marshal(x)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", x, err)
	}
	return append([]byte{version}, b...), nil
}

func decode(b []byte, into any) error {
	switch {
	case len(b) == 0:
		return fmt.Errorf("decode %T: no bytes", into)
	case b[0] != version:
		return fmt.Errorf("decode %T: version %d, this program reads %d: %w", into, b[0], version, ErrVersion)
	}
	if err := decoding.Unmarshal(b[1:], into); err != nil {
		return fmt.Errorf("decode %T: %w", into, err)
	}
	return nil
}
