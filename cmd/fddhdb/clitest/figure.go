package clitest

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strconv"
	"testing"
)

// Texts returns the texts of an SVG and their places. It fails the test unless the SVG
// is well-formed.
func Texts(t *testing.T, svg []byte) (list []string, x, y []float64) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(svg))
	inside := false
	var anchors []string // where x is, of each text
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			for i, anchor := range anchors {
				x[i] -= map[string]float64{"middle": .5, "end": 1}[anchor] * textWidth(list[i])
			}
			return list, x, y
		}
		if err != nil {
			t.Fatal(err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			if inside = e.Name.Local == "text"; inside {
				anchors = append(anchors, "start")
				for _, a := range e.Attr {
					v, _ := strconv.ParseFloat(a.Value, 64)
					switch a.Name.Local {
					case "text-anchor":
						anchors[len(anchors)-1] = a.Value
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

// textWidth returns about the width of a text in 10-point letters.
func textWidth(s string) float64 { return 5.2 * float64(len([]rune(s))) }

// CheckApart checks that texts on one line do not overlap.
func CheckApart(t *testing.T, list []string, x, y []float64) {
	t.Helper()
	for i := range list {
		for j := range list {
			if i != j && y[i] == y[j] && x[i] <= x[j] && x[i]+textWidth(list[i]) > x[j] {
				t.Errorf("%q at %v runs into %q at %v", list[i], x[i], list[j], x[j])
			}
		}
	}
}
