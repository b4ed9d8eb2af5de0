package command

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

type answer struct {
	Query json.RawMessage
	Hits  []answerHit
	Total *int
}

type answerHit struct {
	Key      string
	Distance int
	Score    *float64
}

// Answers are in order, complete, and the same for queries by file, by item and by
// code.
func TestSearch(t *testing.T) {
	f := newFixture(t, 80, true)
	var whole answer
	mustJSON(t, &whole, "search", f.db, "--from", "text", "--to", "image", "--vectors", f.text, "--row", "5",
		"--radius", "16")
	if string(whole.Query) != "5" || len(whole.Hits) != 80 || whole.Total == nil || *whole.Total != 80 {
		t.Fatalf("query %s: %d hits, total %v", whole.Query, len(whole.Hits), whole.Total)
	}
	for i, h := range whole.Hits[1:] {
		last := whole.Hits[i]
		if h.Distance < last.Distance || h.Distance == last.Distance && *h.Score > *last.Score {
			t.Errorf("hit %d is better than the one before", i+1)
		}
	}
	var byItem answer
	mustJSON(t, &byItem, "search", f.db, "--from", "text", "--to", "image", "--key", "5", "-k", "80")
	// The item is the first of those with its code.
	want := slices.Clone(whole.Hits)
	own := slices.IndexFunc(want, func(h answerHit) bool { return h.Key == "5" })
	first := slices.IndexFunc(want, func(h answerHit) bool { return *h.Score == *want[own].Score })
	want = slices.Insert(slices.Delete(want, own, own+1), first, whole.Hits[own])
	for i, h := range byItem.Hits {
		if h.Key != want[i].Key {
			t.Fatalf("hit %d: %s by item, %s by its vector", i, h.Key, want[i].Key)
		}
	}
	if string(byItem.Query) != `"5"` || byItem.Total != nil {
		t.Errorf("query %s, total %v", byItem.Query, byItem.Total)
	}
	var it itemCode
	mustJSON(t, &it, "get", f.db, "5")
	var byCode answer
	mustJSON(t, &byCode, "search", f.db, "--code", it.Code, "--radius", "0")
	if *byCode.Total != len(byCode.Hits) || len(byCode.Hits) == 0 {
		t.Errorf("%d hits of %d", len(byCode.Hits), *byCode.Total)
	}
	for _, h := range byCode.Hits {
		if h.Distance != 0 || h.Score != nil {
			t.Errorf("hit %+v", h)
		}
	}
}

// The asymmetric order is by score, also page by page, and has the same items.
func TestSearchAsymmetric(t *testing.T) {
	f := newFixture(t, 80, true)
	search := []string{"search", f.db, "--from", "text", "--to", "image", "--vectors", f.text, "--row", "5",
		"--rerank", "asymmetric"}
	var whole answer
	mustJSON(t, &whole, append(search, "-k", "80")...)
	if len(whole.Hits) != 80 {
		t.Fatalf("%d hits", len(whole.Hits))
	}
	for i, h := range whole.Hits[1:] {
		if *h.Score > *whole.Hits[i].Score {
			t.Errorf("hit %d has a better score than the one before", i+1)
		}
	}
	at, after := 0, ""
	for {
		var page struct {
			answer
			Next *string
		}
		args := append(search[:len(search):len(search)], "-k", "7")
		if after != "" {
			args = append(args, "--after", after)
		}
		mustJSON(t, &page, args...)
		for _, h := range page.Hits {
			if at >= 80 || h.Key != whole.Hits[at].Key {
				t.Fatalf("hit %d of the pages is %s", at, h.Key)
			}
			at++
		}
		if page.Next == nil {
			break
		}
		after = *page.Next
	}
	if at != 80 {
		t.Errorf("%d hits of 80 in the pages", at)
	}
}

// Answers to several queries are separated.
func TestSearchText(t *testing.T) {
	f := newFixture(t, 20, true)
	out := must(t, "search", f.db, "--from", "text", "--vectors", f.text, "-k", "1")
	if got := strings.Count(out, "\n\nrow "); got != 19 || !strings.HasPrefix(out, "row 0\nrank  key") {
		t.Errorf("%d gaps in %q", got, out)
	}
}

// itemCode is what get and put --json print of the code of an item.
type itemCode struct {
	Code     string `json:"code"`
	CodeFrom string `json:"code_from"`
}
