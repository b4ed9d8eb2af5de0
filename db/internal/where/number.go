package where

import (
	"math"
	"strconv"
	"strings"

	"github.com/fddhdb/fddhdb/internal/instant"
)

// Numbers stay text until it is known what they are compared with. An integer field is
// compared exactly: integerBound places any number, of any length and with a fraction, among
// the integers. A float field holds float64s, so the number is rounded to one. In both cases
// a test becomes spans that have exactly the values for which it is true.

// A bound is the place of a typed number among the 64-bit integers.
type bound struct {
	floor int64 // greatest integer not above the number, if out is 0
	whole bool  // the number is that integer
	out   int   // -1: below all 64-bit integers; 1: above all; 0: among them
}

// integerBound returns the place of a number, exactly for any digits. text must be a
// number of the lexer.
//
// Let D be its significant digits; without its sign the number is 0.D * 10^e. Its whole
// part is then the first e digits, at most 19 for a number of 64 bits, and it has a
// fraction if there are more digits.
func integerBound(text string) bound {
	negative := strings.HasPrefix(text, "-")
	text = strings.TrimLeft(text, "+-")
	mantissa, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	e := len(whole) - (len(whole) + len(fraction) - len(digits)) + parseExponent(exponent)
	digits = strings.TrimRight(digits, "0")
	switch {
	case digits == "":
		return bound{whole: true}
	case e > 19:
		if negative {
			return bound{out: -1}
		}
		return bound{out: 1}
	}
	b := bound{whole: e >= 0 && len(digits) <= e}
	magnitude := uint64(0) // below 10^19, which fits into 64 bits
	for i := range max(e, 0) {
		magnitude *= 10
		if i < len(digits) {
			magnitude += uint64(digits[i] - '0')
		}
	}
	switch {
	case !negative && magnitude > math.MaxInt64:
		return bound{out: 1}
	case !negative:
		b.floor = int64(magnitude)
	case magnitude > 1<<63 || magnitude == 1<<63 && !b.whole:
		return bound{out: -1}
	case b.whole:
		b.floor = -int64(magnitude) // also right for 1<<63, which is its own negative
	default:
		b.floor = -int64(magnitude) - 1
	}
	return b
}

// parseExponent reads an exponent. It cuts it off where the digits of a number of
// MaxBytes could not make up for it.
func parseExponent(s string) int {
	const most = 10 * MaxBytes
	n, err := strconv.Atoi(s)
	switch {
	case s == "":
		return 0
	case err != nil && strings.HasPrefix(s, "-"):
		return -most
	case err != nil:
		return most
	}
	return max(-most, min(n, most))
}

// A span is the values from lo to hi, both included. It is empty if lo is above hi.
type span[T int64 | float64] struct{ lo, hi T }

// intSpans returns the integers for which the comparison with a typed number is true: the
// number need not be an integer, nor fit into 64 bits. For IN it is that of =.
func intSpans(op op, text string) []span[int64] { return spansAround(op, integerBound(text)) }

// timeSpans is intSpans of the microseconds of a time, which instant.Parse can read. What is finer is cut
// off, as it is of values: so a time finds the item that it was put with.
func timeSpans(op op, text string) []span[int64] {
	micros, _ := instant.Parse(text)
	return spansAround(op, bound{floor: micros, whole: true})
}

// spansAround returns the integers for which the comparison with a number is true.
func spansAround(op op, b bound) []span[int64] {
	const least, most = math.MinInt64, math.MaxInt64
	if b.out != 0 {
		below := op == less || op == lessEqual
		above := op == greater || op == greaterEqual
		if op == notEqual || below && b.out > 0 || above && b.out < 0 {
			return []span[int64]{{least, most}}
		}
		return nil
	}
	var under, over []span[int64] // integers below and above the number
	last := b.floor               // the last integer below
	if !b.whole || last > least {
		if b.whole {
			last--
		}
		under = []span[int64]{{least, last}}
	}
	if b.floor < most {
		over = []span[int64]{{b.floor + 1, most}}
	}
	var same []span[int64]
	if b.whole {
		same = []span[int64]{{b.floor, b.floor}}
	}
	return chooseSpans(op, under, same, over)
}

// floatSpans returns the float64s for which the comparison with a number is true. The
// number is rounded to the nearest float64 first, beyond the largest to an infinity.
func floatSpans(op op, text string) []span[float64] {
	x, _ := strconv.ParseFloat(text, 64) // the only error is that it is out of range
	if x == 0 {
		x = 0 // not -0
	}
	least, most := math.Inf(-1), math.Inf(1)
	var under, over []span[float64]
	if x > least {
		under = []span[float64]{{least, math.Nextafter(x, least)}}
	}
	if x < most {
		over = []span[float64]{{math.Nextafter(x, most), most}}
	}
	return chooseSpans(op, under, []span[float64]{{x, x}}, over)
}

// nextInt and nextFloat return the value after x, or x if it is the last.
func nextInt(x int64) int64       { return max(x, x+1) }
func nextFloat(x float64) float64 { return math.Nextafter(x, math.Inf(1)) }

// chooseSpans joins the spans that an operator admits: of the values under a number, the same
// as it, and over it. IN is =.
func chooseSpans[T int64 | float64](op op, under, same, over []span[T]) []span[T] {
	switch op {
	case less:
		return under
	case lessEqual:
		return append(under, same...)
	case greater:
		return over
	case greaterEqual:
		return append(same, over...)
	case notEqual:
		return append(under, over...)
	}
	return same
}
