package wire

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cespare/xxhash/v2"
	"github.com/fxamacker/cbor/v2"

	"github.com/fddhdb/fddhdb/db"
)

var (
	// it has not applied the sequence that the request needs
	ErrBehind  = errors.New("fddhdb: the replica is behind")
	ErrNotHere = errors.New("fddhdb: the shard is not on the node") // any more, or not yet
	ErrExpired = errors.New("fddhdb: the operation came too late to be applied")
	ErrAnswer  = errors.New("fddhdb: the node has failed") // any other error
)

// A Code names the error of a Fault. Databases store codes, so they never change.
type Code uint8

// codes are the errors that travel. The first match counts.
var codes = []struct {
	code Code
	err  error
}{
	{1, db.ErrNotFound}, {2, db.ErrExists}, {3, db.ErrConflict}, {4, db.ErrFull}, {5, db.ErrNoModel},
	{6, db.ErrBusy},
	{7, db.ErrReadOnly}, {8, db.ErrInvalid}, {9, ErrBehind}, {10, ErrNotHere}, {11, ErrExpired},
	{12, context.DeadlineExceeded}, {13, context.Canceled},
	{14, db.ErrCorrupt}, {15, db.ErrClosed}, {16, db.ErrDiskFull}, {17, db.ErrFailed},
	{failed, ErrAnswer},
}

const failed Code = 255

// decided are the errors with which every replica refuses an operation alike.
var decided = []error{db.ErrNotFound, db.ErrExists, db.ErrConflict, db.ErrFull, db.ErrNoModel, db.ErrReadOnly,
	db.ErrInvalid, ErrExpired}

// Decided reports whether an error is the outcome of an operation on every replica, and not trouble of one
// replica.
func Decided(err error) bool {
	if errors.Is(err, db.ErrCorrupt) || errors.Is(err, db.ErrFailed) || errors.Is(err, db.ErrDiskFull) ||
		errors.Is(err, db.ErrClosed) {
		return false
	}
	for _, d := range decided {
		if errors.Is(err, d) {
			return true
		}
	}
	return false
}

// Final reports whether every replica would give this error to a request. Otherwise it is trouble of one
// replica, and another may answer.
func Final(err error) bool { return Decided(err) || errors.Is(err, db.ErrBusy) }

// A Fault is the form of an error in messages. errors.Is finds its error of package db or of this package,
// and errors.As its *db.WhereError.
type Fault struct {
	_     struct{} `cbor:",toarray"`
	Code  Code
	Text  string
	Where *db.WhereError // or nil
}

// FaultOf returns the fault of an error; nil is nil.
func FaultOf(err error) *Fault {
	if err == nil {
		return nil
	}
	var f *Fault
	if errors.As(err, &f) {
		return &Fault{Code: f.Code, Text: err.Error(), Where: f.Where}
	}
	var where *db.WhereError
	errors.As(err, &where)
	for _, c := range codes {
		if errors.Is(err, c.err) {
			return &Fault{Code: c.code, Text: err.Error(), Where: where}
		}
	}
	return &Fault{Code: failed, Text: err.Error()}
}

func (f *Fault) Error() string {
	if f.Text == "" {
		return fmt.Sprint("fddhdb: error ", f.Code)
	}
	return f.Text
}

// Unwrap returns the error of the fault.
func (f *Fault) Unwrap() error {
	if f.Where != nil {
		return f.Where
	}
	for _, c := range codes {
		if c.code == f.Code {
			return c.err
		}
	}
	return ErrAnswer
}

// Every message begins with an envelope: magic, the version, and a checksum of the version and the rest.
// Other bytes are no message of any version, so nobody stops a reader with them. The version is raised with
// each change of what a message has (TestLayout): a program that reads another one would pass over operations
// that others carry out.
const (
	magic    = "fddh"
	version  = 6
	envelope = len(magic) + 1 + 8
)

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
	m := append(make([]byte, 0, envelope+len(b)), magic...)
	m = append(m, version)
	m = binary.BigEndian.AppendUint64(m, checksum(version, b))
	return append(m, b...), nil
}

func checksum(version byte, b []byte) uint64 { return xxhash.Sum64(b) + uint64(version) }

func decode(b []byte, into any) error {
	switch {
	case len(b) < envelope || string(b[:len(magic)]) != magic:
		return fmt.Errorf("decode %T: no message of fddhdb", into)
	case binary.BigEndian.Uint64(b[envelope-8:]) != checksum(b[len(magic)], b[envelope:]):
		return fmt.Errorf("decode %T: its checksum is wrong", into)
	case b[len(magic)] != version:
		return fmt.Errorf("decode %T: version %d, this program reads %d: %w", into, b[len(magic)], version,
			ErrVersion)
	}
	if err := decoding.Unmarshal(b[envelope:], into); err != nil {
		return fmt.Errorf("decode %T: %w", into, err)
	}
	return nil
}
