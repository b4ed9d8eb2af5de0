package main

import (
	"context"
	"slices"
	"sync"
	"testing"
)

// testDataset loads the dataset once for all tests, which only read it.
var testDataset = sync.OnceValues(func() (*dataset, error) {
	return loadDataset(context.Background())
})

func dataForTest(t *testing.T) *dataset {
	t.Helper()
	d, err := testDataset()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestListEmoji(t *testing.T) {
	list := listEmoji()
	if !slices.Equal(list, listEmoji()) {
		t.Error("two calls list the emoji in different order")
	}
	spelling := make(map[string]emoji)
	for _, e := range list {
		if !slices.Contains(mainGroups, e.group) {
			t.Errorf("%s (%s) is in the stray group %q", e.char, e.name, e.group)
		}
		if hasSkinTone(e.char) {
			t.Errorf("%s (%s) has a skin tone", e.char, e.name)
		}
		spelling[e.name] = e
	}
	for name, want := range map[string]emoji{
		"red heart": {char: "\u2764\ufe0f", group: "Smileys & Emotion", subgroup: "heart"},
		"watch":     {char: "\u231a", group: "Travel & Places", subgroup: "time"},
		"red hair":  {char: "\U0001F9B0", group: "People & Body", subgroup: "hair-style"},
		"flag: Wales": {char: "\U0001F3F4\U000E0067\U000E0062\U000E0077\U000E006C\U000E0073\U000E007F",
			group: "Flags", subgroup: "subdivision-flag"},
		"historic site": {char: "\u26ec", group: "Travel & Places"},
	} {
		want.name = name
		if got := spelling[name]; got != want {
			t.Errorf("got %+q, want %+q", got, want)
		}
	}
}

func TestFind(t *testing.T) {
	d := dataForTest(t)
	for char, want := range map[string]string{"\u2764": "red heart", "\u2764\ufe0f": "red heart", "🐈": "cat",
		"🐈\ufe0f": "cat", "x": "", "": ""} {
		got := ""
		if i := d.find(char); i >= 0 {
			got = d.items[i].name
		}
		if got != want {
			t.Errorf("%+q is found as %q, not %q", char, got, want)
		}
	}
}

func TestDatasetIsLarge(t *testing.T) {
	d := dataForTest(t)
	labels := labelNames(d.labels)
	t.Logf("%d emoji, %d without a picture, %d labels", len(d.items), len(d.undrawn), len(labels))
	if len(d.items) < 1850 {
		t.Errorf("only %d emoji", len(d.items))
	}
	if len(labels) > maxLabels {
		t.Errorf("%d labels do not fit into %d bits", len(labels), maxLabels)
	}
	if !slices.Equal(labels[:len(mainGroups)], mainGroups) {
		t.Errorf("the labels begin with %q", labels[:len(mainGroups)])
	}
	if len(d.pictures) != len(d.items) || len(d.labels) != len(d.items) {
		t.Errorf("%d items, %d pictures, %d label sets", len(d.items), len(d.pictures), len(d.labels))
	}
}

// The relevance of the example and that of fddhdb's evaluation agree only if every
// subgroup lies in one group.
func TestSubgroupsLieInOneGroup(t *testing.T) {
	d := dataForTest(t)
	groupOf := make(map[string]string)
	for i, set := range d.labels {
		if set[0] != d.items[i].group || len(set) > 2 {
			t.Errorf("%s has labels %q", d.items[i].name, set)
		}
		for _, subgroup := range set[1:] {
			if g, ok := groupOf[subgroup]; ok && g != set[0] {
				t.Errorf("subgroup %q is in %q and %q", subgroup, g, set[0])
			}
			groupOf[subgroup] = set[0]
		}
	}
}

func TestSplit(t *testing.T) {
	d := dataForTest(t)
	train, held := d.split()
	if share := 100 * len(held) / len(d.items); share < 12 || share > 18 {
		t.Errorf("%d %% held out", share)
	}
	sideOf := make(map[string]int)
	taught := make(map[string]bool)
	for side, rows := range [][]int{train, held} {
		for _, i := range rows {
			f := family(d.items[i].name)
			if other, ok := sideOf[f]; ok && other != side {
				t.Errorf("%q has a twin on the other side", d.items[i].name)
			}
			sideOf[f] = side
			if side == 0 {
				for _, l := range d.labels[i] {
					taught[l] = true
				}
			}
		}
	}
	if len(train)+len(held) != len(d.items) {
		t.Errorf("%d + %d items of %d", len(train), len(held), len(d.items))
	}
	for _, l := range labelNames(d.labels) {
		if !taught[l] {
			t.Errorf("no training item has the label %q", l)
		}
	}
	if c := d.chance(held, train); c < 0.1 || c > 0.2 {
		t.Errorf("chance is %.3f", c)
	}
}
