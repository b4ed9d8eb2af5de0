package chart

import (
	"bytes"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/clitest"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/model"
)

func modelsDrawn(t *testing.T, spaces []db.SpaceInfo) string {
	t.Helper()
	draw := func(path string) []byte {
		var b bytes.Buffer
		if err := WriteSpaces(&b, path, spaces); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	svg := draw("a.svg")
	if !bytes.Equal(svg, draw("a.svg")) || !bytes.HasPrefix(draw("a.png"), []byte("\x89PNG")) || strings.Contains(string(svg), "NaN") {
		t.Error("equal spaces, other bytes, no numbers, or no PNG")
	}
	list, x, y := clitest.Texts(t, svg)
	clitest.CheckApart(t, list, x, y)
	return "\n" + strings.Join(list, "\n") + "\n"
}

func TestModelsPlot(t *testing.T) {
	clitest.OneGoroutine(t)
	spaces := clitest.Spaces()
	spaces[0].Training = &model.Report{Objective: []float64{113252.7, 106793.1, 106700}, SweepMAP: []float64{.55, .56, .56}}
	spaces[1].Training = &model.Report{Objective: []float64{21_780_000}}
	clitest.CheckTexts(t, modelsDrawn(t, spaces), map[string]int{
		"space 1: training": 1, "objective": 2, "space 1: items held out": 1, "mAP": 2, "sweep": 3,
		"space 1: items that came": 4, "residual": 1, "revision": 4, "1 (trained)": 4, "3": 2 + 4,
		"image": 2, "text": 2, "overall": 1, "bit balance": 1,
		"space 2: training": 1, "space 2: items that came": 0,
	})
	// The scale of many revisions and modalities.
	s := clitest.Spaces()[:1]
	drift := s[0].Revisions[2].Drift
	for _, name := range []string{"sound", "an exceedingly long name of a modality", "<&>", "e", "f", "g", "h", "i"} {
		drift.Modalities[name] = drift.Modalities["image"]
	}
	for n := uint32(4); n < 200; n++ {
		s[0].Revisions = append(s[0].Revisions, db.RevisionInfo{Revision: n, Drift: drift})
	}
	clitest.CheckTexts(t, modelsDrawn(t, s), map[string]int{"150": 4, "sound": 2, "an exceed…": 2, "<&>": 2, "space 1: training": 0})
}

// With many spaces the latest are drawn, and the figure says so.
func TestModelsPlotOfMany(t *testing.T) {
	clitest.OneGoroutine(t)
	var spaces []db.SpaceInfo
	for n := range db.Space(3 * plottedSpaces) {
		s := db.SpaceInfo{Space: n + 1}
		if n%2 == 0 { // others have nothing to draw
			s.Training = &model.Report{Objective: []float64{2, 1}}
		}
		spaces = append(spaces, s)
	}
	clitest.CheckTexts(t, modelsDrawn(t, spaces[:2*plottedSpaces]), map[string]int{"space 1: training": 1, "space 15: training": 1, "objective": plottedSpaces})
	clitest.CheckTexts(t, modelsDrawn(t, spaces), map[string]int{
		"the latest 8 of 12 spaces; --space N draws another": 1, "objective": plottedSpaces,
		"space 7: training": 0, "space 9: training": 1, "space 23: training": 1,
	})
}

// A training and a reindex of few items make figures; nothing at all is an error.
func TestModelsPlotOfLittle(t *testing.T) {
	clitest.OneGoroutine(t)
	s := clitest.Spaces()[:1]
	s[0].Revisions = s[0].Revisions[:1]
	s[0].Revisions[0].Drift = nil
	clitest.CheckTexts(t, modelsDrawn(t, s), map[string]int{"residual": 1, "1": 4})
	for _, none := range [][]db.SpaceInfo{nil, clitest.Spaces()[1:2]} {
		if err := WriteSpaces(&bytes.Buffer{}, "a.svg", none); exit.Code(err) != exit.Failed {
			t.Errorf("%d spaces: %v", len(none), err)
		}
	}
}
