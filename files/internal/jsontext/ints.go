package jsontext

import (
	"fmt"
	"math"
	"strconv"
)

// Uint32s reads an array of whole numbers, 0 or more, and appends them to dst. More
// than limit numbers in dst are an error.
func (s *Scanner) Uint32s(dst []uint32, limit int) ([]uint32, error) {
	err := s.Array(func() error {
		if len(dst) == limit {
			return fmt.Errorf("byte %d: there are more than %d numbers", s.at, limit)
		}
		d, text, err := s.number()
		if err != nil {
			return err
		}
		if !d.whole || d.exponent != 0 || d.negative || d.mantissa > math.MaxUint32 {
			return fmt.Errorf("%s is not a whole number from 0 to %s", quote(text), strconv.FormatUint(math.MaxUint32, 10))
		}
		dst = append(dst, uint32(d.mantissa))
		return nil
	})
	return dst, err
}
