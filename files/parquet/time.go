package parquet

import (
	"encoding/binary"

	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"

	"github.com/fddhdb/fddhdb/internal/instant"
)

// Microseconds of the units of time.
const (
	micros = int64(1)
	millis = 1000 * micros
	day    = 86_400_000 * millis

	nanos = int64(-1000) // a thousand of them are a microsecond
)

// setUnit makes a leaf of integers one of times if its type is that of dates or timestamps. Times of a place
// without its offset are taken for UTC (isAdjustedToUTC is not looked at).
func (l *leaf) setUnit(e *format.SchemaElement, converted deprecated.ConvertedType) {
	unit := int64(0)
	switch t := e.LogicalType.Value.(type) {
	case *format.DateType:
		unit = day
	case *format.TimestampType:
		switch t.Unit.Value.(type) {
		case *format.MilliSeconds:
			unit = millis
		case *format.MicroSeconds:
			unit = micros
		case *format.NanoSeconds:
			unit = nanos
		}
	case nil:
		unit = map[deprecated.ConvertedType]int64{
			deprecated.Date: day, deprecated.TimestampMillis: millis, deprecated.TimestampMicros: micros,
		}[converted]
	}
	if unit != 0 && (unit == day) == (l.width == 4) {
		l.kind, l.unit = times, unit
	}
}

// time returns a value of kind times in microseconds. What is finer is cut off, towards the past.
func (l *leaf) time(b []byte) (int64, error) {
	switch {
	case l.width == 12: // nanoseconds of the day, and the day of the Julian calendar
		const epoch = 2_440_588 // 1970-01-01
		at, err := instant.Scale(int64(binary.LittleEndian.Uint32(b[8:]))-epoch, day)
		if at += floor(int64(binary.LittleEndian.Uint64(b))); err == nil && !instant.Has(at) {
			err = instant.ErrFar
		}
		return at, err
	case l.unit == nanos:
		return floor(l.int64(b)), nil
	}
	return instant.Scale(l.int64(b), l.unit)
}

// floor returns the microseconds of nanoseconds.
func floor(nanos int64) int64 {
	at := nanos / 1000
	if nanos%1000 < 0 {
		at--
	}
	return at
}
