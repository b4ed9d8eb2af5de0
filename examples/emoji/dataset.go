package main

import (
	"cmp"
	"context"
	"hash/fnv"
	"image"
	"maps"
	"slices"
	"strings"

	"github.com/forPelevin/gomoji"
)

// An emoji is one item of the finder: it has a picture (how the font draws
// char) and words (name), and it is labelled by group and subgroup.
type emoji struct {
	char     string // the character sequence as a keyboard sends it; the key in the database
	name     string // the Unicode name, such as "grinning cat with smiling eyes"
	group    string // one of mainGroups
	subgroup string // Unicode's finer class, such as "cat-face"; empty where the list gives none
}

// mainGroups are the nine groups of Unicode's emoji list (emoji-test.txt)
// that an emoji finder shows as tabs.
var mainGroups = []string{
	"Smileys & Emotion",
	"People & Body",
	"Animals & Nature",
	"Food & Drink",
	"Travel & Places",
	"Activities",
	"Objects",
	"Symbols",
	"Flags",
}

// strayGroups says where entries go that gomoji took from lists other than Unicode's.
// Their subgroup only repeats the name of the stray group, so it is dropped.
// "Component" is Unicode's own name for the loose hair styles.
var strayGroups = map[string]string{
	"Component":      "People & Body",
	"abstract":       "Symbols",
	"faces":          "Smileys & Emotion",
	"gestures":       "People & Body",
	"nature":         "Animals & Nature",
	"objects":        "Objects",
	"people":         "People & Body",
	"places":         "Travel & Places",
	"symbols":        "Symbols",
	"transportation": "Travel & Places",
}

// smallestSubgroup is the number of members from which on a subgroup is a label. A
// smaller one cannot be learned: after the split it would have two or three examples.
const smallestSubgroup = 5

// maxLabels is the number of bits that the example trains. FDDH gives every label its
// own direction in code space, so it needs at least as many bits as labels.
const maxLabels = 128

// listEmoji returns every emoji that gomoji knows, each once, ordered by character. It
// leaves out the variants in five skin tones, and emoji without an English name.
// gomoji's map of characters has the same emoji with and without variation selectors;
// the fully qualified spelling in a main group wins. The order does not depend on the
// order of the map.
func listEmoji() []emoji {
	byPicture := make(map[string]gomoji.Emoji)
	for _, e := range gomoji.AllEmojis() {
		if hasSkinTone(e.Character) || !hasEnglishName(e) {
			continue
		}
		id := pictureID(e.Character)
		if old, ok := byPicture[id]; !ok || betterEntry(e, old) {
			byPicture[id] = e
		}
	}
	list := make([]emoji, 0, len(byPicture))
	for _, id := range slices.Sorted(maps.Keys(byPicture)) {
		e := byPicture[id]
		char := e.Character
		if q, err := gomoji.GetInfo(char + variationSelector16); err == nil &&
			q.UnicodeName == e.UnicodeName {
			// gomoji groups the red heart like this, but spells it without the selector
			char += variationSelector16
		}
		item := emoji{char: char, name: plainName(e.UnicodeName), group: e.Group, subgroup: e.SubGroup}
		if group, stray := strayGroups[e.Group]; stray {
			item.group = group
			if item.subgroup == e.Group {
				item.subgroup = ""
			}
		}
		list = append(list, item)
	}
	return list
}

// variationSelector16 asks for a colour picture of the character before it.
const variationSelector16 = "\ufe0f"

// pictureID is the same for all spellings of one emoji, with and without
// variation selectors.
func pictureID(char string) string { return strings.ReplaceAll(char, variationSelector16, "") }

func hasSkinTone(char string) bool {
	return strings.ContainsFunc(char, func(r rune) bool { return '\U0001F3FB' <= r && r <= '\U0001F3FF' })
}

// hasEnglishName is false for the entries of a Japanese list that gomoji has besides
// Unicode's. Their names are no words of an English query.
func hasEnglishName(e gomoji.Emoji) bool {
	return strings.ContainsFunc(plainName(e.UnicodeName), func(r rune) bool {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
	})
}

// betterEntry reports whether a should stand for both a and b, which show the same
// picture. A main group wins against a stray one, then more variation selectors (the
// fully qualified spelling), then byte order.
func betterEntry(a, b gomoji.Emoji) bool {
	_, aStray := strayGroups[a.Group]
	_, bStray := strayGroups[b.Group]
	if aStray != bStray {
		return bStray
	}
	return cmp.Or(
		cmp.Compare(strings.Count(a.Character, variationSelector16),
			strings.Count(b.Character, variationSelector16)),
		cmp.Compare(b.Character, a.Character),
	) > 0
}

// plainName removes the version that gomoji puts before a name, as in "E0.6 cat".
func plainName(s string) string {
	if version, name, ok := strings.Cut(s, " "); ok && len(version) > 1 && version[0] == 'E' &&
		'0' <= version[1] && version[1] <= '9' {
		return name
	}
	return s
}

// labelSets gives each emoji its labels: the main group, and the subgroup if at least
// smallestSubgroup of the items are in it. The two cannot be confused: groups are
// capitalised, subgroups are not.
func labelSets(items []emoji) [][]string {
	members := make(map[string]int)
	for _, e := range items {
		members[e.subgroup]++
	}
	sets := make([][]string, len(items))
	for i, e := range items {
		sets[i] = []string{e.group}
		if e.subgroup != "" && members[e.subgroup] >= smallestSubgroup {
			sets[i] = append(sets[i], e.subgroup)
		}
	}
	return sets
}

// labelNames returns the distinct labels of sets: the main groups first, in
// their usual order, then the subgroups by name.
func labelNames(sets [][]string) []string {
	seen := make(map[string]bool)
	for _, set := range sets {
		for _, l := range set {
			seen[l] = true
		}
	}
	var names []string
	for _, g := range mainGroups {
		if seen[g] {
			names = append(names, g)
			delete(seen, g)
		}
	}
	return append(names, slices.Sorted(maps.Keys(seen))...)
}

// A dataset has every emoji with both sides: a picture that the font can draw, and an
// English name. The slices are parallel.
type dataset struct {
	items    []emoji
	pictures []*image.RGBA
	labels   [][]string
	undrawn  []emoji // emoji for which the font has no single picture
}

// loadDataset lists and draws the emoji. It takes about a second on two cores.
func loadDataset(ctx context.Context) (*dataset, error) {
	listed := listEmoji()
	pictures, err := renderAll(ctx, listed)
	if err != nil {
		return nil, err
	}
	d := new(dataset)
	for i, e := range listed {
		if pictures[i] == nil {
			d.undrawn = append(d.undrawn, e)
			continue
		}
		d.items = append(d.items, e)
		d.pictures = append(d.pictures, pictures[i])
	}
	d.labels = labelSets(d.items)
	return d, nil
}

// heldOutPercent is roughly the share of emoji that training does not see.
const heldOutPercent = 15

// split returns the numbers of the items to train on, and of the held-out ones.
//
// Emoji whose names differ only in the person ("man running", "woman running") have
// almost the same picture, so they stay on one side. Otherwise held-out queries would
// find their twins. The split depends on names alone, and is the same on every machine.
func (d *dataset) split() (train, held []int) {
	for i, e := range d.items {
		// The low bits of FNV hardly depend on the last bytes. The high bits of the
		// product do.
		h := fnv.New64a()
		h.Write([]byte(family(e.name)))
		if h.Sum64()*0x9E3779B97F4A7C15>>32%100 < heldOutPercent {
			held = append(held, i)
		} else {
			train = append(train, i)
		}
	}
	return train, held
}

// family returns a name without the words that distinguish twins.
func family(name string) string {
	return strings.Join(slices.DeleteFunc(tokens(name), func(word string) bool {
		switch word {
		case "person", "people", "man", "men", "woman", "women", "boy", "girl":
			return true
		}
		return false
	}), " ")
}

// find returns the number of the emoji with the spelling char, with or without
// variation selectors, or -1.
func (d *dataset) find(char string) int {
	id := pictureID(char)
	return slices.IndexFunc(d.items, func(e emoji) bool { return pictureID(e.char) == id })
}

// names returns the names of the items with the numbers rows.
func (d *dataset) names(rows []int) []string {
	names := make([]string, len(rows))
	for i, row := range rows {
		names[i] = d.items[row].name
	}
	return names
}

// relevant reports whether items i and j have the same main group. That is the same as
// "at least one label in common", the relevance in fddhdb's evaluation, because a
// subgroup lies inside one main group.
func (d *dataset) relevant(i, j int) bool {
	return d.items[i].group == d.items[j].group
}

// chance returns the precision, and nearly the mAP, of answers that have the database
// in random order.
func (d *dataset) chance(queries, database []int) float64 {
	var pairs int
	for _, q := range queries {
		for _, row := range database {
			if d.relevant(q, row) {
				pairs++
			}
		}
	}
	return float64(pairs) / float64(len(queries)*len(database))
}
