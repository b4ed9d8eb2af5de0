package main

import (
	"cmp"
	"flag"
	"hash/fnv"
	"slices"
	"testing"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/fddhdb/fddhdb/db"
)

var crossValidate = flag.Bool("cv", false,
	"compare training options by cross-validation on the training emoji (a minute)")

// TestChoice prints the table above trainOptions. It never uses an emoji that the
// program holds out.
func TestChoice(t *testing.T) {
	if !*crossValidate {
		t.Skip("without -cv")
	}
	const folds = 4
	d := dataForTest(t)
	train, _ := d.split()
	var parts [folds][]int // twins stay in one fold, as in split
	for _, i := range train {
		h := fnv.New64a()
		h.Write([]byte("cv" + family(d.items[i].name)))
		k := h.Sum64() * 0x9E3779B97F4A7C15 >> 32 % folds
		parts[k] = append(parts[k], i)
	}
	for _, option := range []struct {
		anchors int // 0: all
		gamma   float64
	}{{800, .01}, {0, .01}, {0, .03}, {0, .1}, {0, .3}} {
		var sum [4]float64
		for k := range folds {
			learn := slices.Concat(slices.Concat(parts[:k]...), slices.Concat(parts[k+1:]...))
			slices.Sort(learn)
			opt := trainOptions(cmp.Or(option.anchors, len(learn))).Options
			opt.Gamma["words"] = option.gamma
			for i, x := range judge(t, d, learn, parts[k], opt) {
				sum[i] += x / folds
			}
		}
		t.Logf("anchors %4d gamma %.2f  picture->words %.3f  words->picture %.3f  recall %.3f  first %.3f",
			option.anchors, option.gamma, sum[0], sum[1], sum[2], sum[3])
	}
}

// judge trains on the emoji learn, evaluates with others, and adds these without
// labels. Then it asks for every word of the learned names.
func judge(t *testing.T, d *dataset, learn, others []int, opt fit.Options) (figures [4]float64) {
	f, err := openFinder(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	v := learnVocabulary(d.texts(learn))
	items, err := describe(t.Context(), d, v)
	if err == nil {
		err = f.put(t.Context(), items, learn)
	}
	if err == nil {
		_, err = f.emoji.Train(t.Context(), db.TrainOptions{Options: opt})
	}
	if err != nil {
		t.Fatal(err)
	}
	retrievals, err := f.evaluate(t.Context(), items, others)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range retrievals {
		figures[i] = r.Hamming.MAP
	}
	for _, i := range others {
		items[i].Labels = nil
	}
	if err := f.put(t.Context(), items, others); err != nil {
		t.Fatal(err)
	}
	known := make(map[string]int) // number of names with the word
	for _, i := range learn {
		for _, word := range distinctWords(d.items[i].name) {
			known[word]++
		}
	}
	for _, i := range others {
		for _, word := range distinctWords(d.items[i].name) {
			if known[word] > 0 {
				known[word]++
			}
		}
	}
	const among = 20
	for word, n := range known {
		vector, _ := v.embed(word)
		r, err := f.emoji.Search(t.Context(), db.Query{From: "words", To: "picture", Vector: vector,
			K: among})
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for rank, hit := range r.Hits {
			if slices.Contains(tokens(d.items[d.find(hit.Key)].name), word) {
				found++
				if rank == 0 {
					figures[3] += 1 / float64(len(known))
				}
			}
		}
		figures[2] += float64(found) / float64(min(n, among)) / float64(len(known))
	}
	return figures
}

// distinctWords returns the words of a name that somebody might ask for.
func distinctWords(name string) []string {
	words := slices.DeleteFunc(tokens(name), func(word string) bool { return len(word) < 3 })
	slices.Sort(words)
	return slices.Compact(words)
}
