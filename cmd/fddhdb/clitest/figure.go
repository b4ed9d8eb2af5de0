package clitest

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"
)

// Texts returns the texts of an SVG and their places. It fails the test unless the SVG
// is well-formed.
func Texts(t *testing.T, svg []byte) (list []string, x, y []float64) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(svg))
	inside := false
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return list, x, y
		}
		if err != nil {
			t.Fatal(err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			if inside = e.Name.Local == "text"; inside {
				for _, a := range e.Attr {
					v, _ := strconv.ParseFloat(a.Value, 64)
					switch a.Name.Local {
					case "x":
						x = append(x, v)
					case "y":
						y = append(y, v)
					}
				}
			}
		case xml.EndElement:
			inside = false
		case xml.CharData:
			if inside {
				list = append(list, string(e))
			}
		}
	}
}

// CheckApart checks that texts on one line do not overlap. 10-point letters are about
// 5.5 wide.
func CheckApart(t *testing.T, list []string, x, y []float64) {
	t.Helper()
	for i := range list {
		for j := range list {
			if i != j && y[i] == y[j] && x[i] <= x[j] && x[i]+5.5*float64(len([]rune(list[i])))*.95 > x[j] {
				t.Errorf("%q at %v runs into %q at %v", list[i], x[i], list[j], x[j])
			}
		}
	}
}

// CheckTexts fails the test unless each text is in a figure as often as wanted.
func CheckTexts(t *testing.T, all string, wanted map[string]int) {
	t.Helper()
	for text, times := range wanted {
		if got := strings.Count(all, "\n"+text+"\n"); got != times {
			t.Errorf("%q stands there %d times, not %d, in %q", text, got, times, all)
		}
	}
}
