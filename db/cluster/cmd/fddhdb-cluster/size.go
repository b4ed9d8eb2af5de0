package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// A size is the value of a flag: a number of bytes, with or without a unit.
type size int64

func (s *size) Type() string { return "SIZE" }

func (s *size) String() string {
	for _, u := range sizeUnits {
		if n := int64(*s); n > 0 && n%u.bytes == 0 {
			return fmt.Sprint(n/u.bytes, u.name)
		}
	}
	return fmt.Sprint(int64(*s))
}

// sizeUnits are the units of String, the largest first.
var sizeUnits = []struct {
	name  string
	bytes int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}}

func (s *size) Set(text string) error {
	number, unit := strings.TrimSpace(text), int64(1)
	for _, u := range sizeUnits {
		if rest, is := strings.CutSuffix(strings.ToLower(number), strings.ToLower(u.name)); is {
			number, unit = strings.TrimSpace(rest), u.bytes
			break
		}
	}
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || !(n > 0) || n*float64(unit) > 1<<60 {
		return errors.New("a number of bytes is expected, such as 256MiB or 1GiB")
	}
	*s = size(n * float64(unit))
	return nil
}
