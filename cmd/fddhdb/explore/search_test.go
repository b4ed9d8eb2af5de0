package explore

import (
	"context"
	"encoding/hex"
	"fmt"
	"math/bits"
	"net/url"
	"slices"
	"testing"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/google/go-cmp/cmp"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
)

// hitsForm has the fields of an answer that a user of the API reads.
type hitsForm struct {
	Query any
	Hits  []struct {
		Key      string
		Distance int
		Score    *float64

		Similarity *float32
		Item       any
	}
	Items []struct {
		Key string
	}
	Next      *string
	Total     *int
	QueryCode string `json:"query_code"`
	Explain   *struct{ Plan string }
	Space     int
}

// scan returns the distances of all items from a code, by key, without the index.
func scan(t *testing.T, d *db.DB, collection string, space db.Space, where string,
	code []byte) map[string]int {
	t.Helper()
	c, err := d.Collection(collection)
	check(t, err)
	c, err = c.InSpace(space, 0)
	check(t, err)
	distances := map[string]int{}
	for it, err := range c.Items(context.Background(), where) {
		check(t, err)
		n := 0
		for i := range code {
			n += bits.OnesCount8(code[i] ^ it.Code[i])
		}
		distances[it.Key] = n
	}
	return distances
}

// Answers by k, by radius, filtered and page by page equal those of a scan, and so does
// the histogram.
func TestSearchIsAScan(t *testing.T) {
	d := sharedDatabase(t)
	s := newServer(t, d)
	for _, c := range []struct {
		collection string
		space      db.Space
		to         string
		where      string
		query      string
	}{
		{"main", 0, "text", "", "key=item+7&from=image"},
		{"main", 0, "", "", "key=item+8&from=text"},
		{"main", 0, "", "", "key=item+9"},
		{"main", 0, "", "year >= 2010 AND label = 'label1'", "key=item+8&from=text"},
		{"main", 0, "", "", "code=0ff0"},
		{"main", 2, "image", "", "key=item+7&from=text"},
		{"main", 2, "text", "year < 2005", "code=0ff0aa"},
		{"given", 0, "", "", "code=01020001"},
		{"given", 0, "", "", "key=17"},
	} {
		query := "?collection=" + c.collection + "&" + c.query
		if c.to != "" {
			query += "&to=" + c.to
		}
		if c.space != 0 {
			query += fmt.Sprint("&space=", c.space)
		}
		if c.where != "" {
			query += "&where=" + url.QueryEscape(c.where)
		}
		all := get[hitsForm](t, s, "/api/search"+query+"&k=1000&items=true")
		code, err := hex.DecodeString(all.QueryCode)
		check(t, err)
		want := scan(t, d, c.collection, c.space, c.where, code)
		if len(all.Hits) != len(want) {
			t.Fatalf("%s: %d hits of %d items", query, len(all.Hits), len(want))
		}
		for i, h := range all.Hits {
			if want[h.Key] != h.Distance || i > 0 && h.Distance < all.Hits[i-1].Distance ||
				all.Items[i].Key != h.Key {
				t.Fatalf("%s: hit %d is %q at %d, which is at %d; its item is %q", query, i, h.Key,
					h.Distance, want[h.Key], all.Items[i].Key)
			}
		}
		histogram := get[histogramForm](t, s, "/api/histogram"+query)
		counts := make([]int, 8*len(code)+1)
		for _, n := range want {
			counts[n]++
		}
		if diff := cmp.Diff(histogramForm{Items: len(want), Bits: 8 * len(code), Distances: counts},
			histogram); diff != "" {
			t.Errorf("%s: histogram: %s", query, diff)
		}
		for _, radius := range []int{0, 3, 7, 100} {
			within := 0
			for _, n := range want {
				if n <= radius {
					within++
				}
			}
			got := get[hitsForm](t, s, fmt.Sprintf("/api/search%s&radius=%d&k=5", query, radius))
			if *got.Total != within || len(got.Hits) != min(5, within) || (got.Next != nil) != (within > 5) {
				t.Errorf("%s: radius %d: total %d, %d hits, want %d of %d", query, radius, *got.Total,
					len(got.Hits), min(5, within), within)
			}
			if diff := cmp.Diff(all.Hits[:len(got.Hits)], got.Hits); diff != "" {
				t.Errorf("%s: radius %d: %s", query, radius, diff)
			}
		}
		paged := slices.Clone(all.Hits[:0])
		for next := ""; ; {
			page := get[hitsForm](t, s, "/api/search"+query+"&k=77&after="+url.QueryEscape(next))
			paged = append(paged, page.Hits...)
			if page.Next == nil {
				break
			}
			next = *page.Next
		}
		if diff := cmp.Diff(all.Hits, paged); diff != "" {
			t.Errorf("%s: page by page: %s", query, diff)
		}
	}
}

// A hit has its similarity where something was compared, and a least one leaves out what has
// less, of the total and of the histogram, too.
func TestSimilarity(t *testing.T) {
	s := newServer(t, sharedDatabase(t))
	for _, query := range []string{"key=item+9", "code=0ff0", "key=item+7&from=image&rerank=none"} {
		for _, h := range get[hitsForm](t, s, "/api/search?items=true&"+query).Hits {
			if h.Similarity != nil || h.Item != nil {
				t.Errorf("%s: %+v", query, h)
			}
		}
	}
	for _, order := range []string{"projection", "asymmetric"} {
		query := "key=item+7&from=image&rerank=" + order
		all := get[hitsForm](t, s, "/api/search?radius=16&k=100&"+query)
		least := *all.Hits[len(all.Hits)/2].Similarity
		want := slices.Clone(all.Hits[:0])
		for _, h := range all.Hits {
			if *h.Similarity >= least {
				want = append(want, h)
			}
		}
		limited := query + "&min-similarity=" + fmt.Sprint(least)
		got := get[hitsForm](t, s, "/api/search?k=100&"+limited)
		if len(want) < 2 || len(got.Hits) < len(want) {
			t.Fatalf("%s: %d hits, want %d", order, len(got.Hits), len(want))
		}
		if diff := cmp.Diff(want, got.Hits[:len(want)]); diff != "" {
			t.Errorf("%s: %s", order, diff)
		}
		for _, h := range got.Hits {
			if *h.Similarity < least {
				t.Errorf("%s: %+v", order, h)
			}
		}
		within := get[hitsForm](t, s, "/api/search?radius=16&"+limited)
		if counted := get[histogramForm](t, s, "/api/histogram?"+limited).Items; *within.Total != counted ||
			counted >= *all.Total || counted < len(want) {
			t.Errorf("%s: %d within 16 bits, %d counted, of %d", order, *within.Total, counted, *all.Total)
		}
	}
}

// Explain and plans describe the search that was done.
func TestExplain(t *testing.T) {
	s := newServer(t, sharedDatabase(t))
	plain := get[hitsForm](t, s, "/api/search?key=item+3&from=image&to=text")
	explained := get[hitsForm](t, s, "/api/search?key=item+3&from=image&to=text&explain=true")
	if explained.Explain == nil || explained.Explain.Plan == "" || plain.Explain != nil {
		t.Errorf("explain %+v, and without being asked for %+v", explained.Explain, plain.Explain)
	}
	if diff := cmp.Diff(plain.Hits, explained.Hits); diff != "" {
		t.Error(diff)
	}
	plans := get[struct{ Plans []planForm }](t, s, "/api/plans?to=text").Plans
	if len(plans) == 0 || plans[0].Op != "knn" || plans[0].Explain.Plan == "" ||
		len(plans[0].Explain.Predicted) < 2 {
		t.Errorf("plans %+v", plans)
	}
	if plans := get[struct{ Plans []planForm }](t, s, "/api/plans?collection=empty").Plans; plans == nil ||
		len(plans) > 0 {
		t.Errorf("an empty collection is searched by %+v", plans)
	}
}

// Each mistake has its status and an explanation.
func TestMistakes(t *testing.T) {
	s := newServer(t, sharedDatabase(t))
	for target, want := range map[string]struct {
		status int
		text   string
	}{
		"/api/search": {400,
			"one of key, code, text, picture and upload"},
		"/api/search?key=a&code=00": {400, "this one has 2"},
		"/api/search?key=item+1&k=0": {400,
			`k="0": a whole number from 1 to 1000`},
		"/api/search?key=item+1&k=1001":                 {400, "1 to 1000"},
		"/api/search?key=item+1&k=99999999999999999999": {400, "1 to 1000"},
		"/api/search?key=item+1&k=ten":                  {400, `k="ten"`},
		"/api/search?key=item+1&radius=-1":              {400, "radius"},
		"/api/search?key=item+1&space=-3":               {400, "space"},
		"/api/search?key=item+1&space=7":                {404, "7"},
		"/api/search?key=item+1&rerank=best":            {400, "unknown rerank"},
		"/api/search?key=item+1&k=3&k=4":                {400, "k is given 2 times"},
		"/api/search?key=item+1&radus=3": {400,
			`there is no parameter "radus"`},
		"/api/search?key=item+1&explain=maybe": {400, "true or false"},
		"/api/search?key=%ff":                  {400, "not UTF-8"},
		"/api/search?key=%zz":                  {400, "cannot be read"},
		"/api/search?key=a;b":                  {400, "cannot be read"},
		"/api/search?key=nobody":               {404, "not found"},
		"/api/search?key=item+1&collection=nope": {404,
			"there is empty, given, main"},
		"/api/search?key=item+1&collection=../main":    {404, "no collection"},
		"/api/search?key=x&collection=empty":           {404, "not found"},
		"/api/search?code=0f&collection=empty":         {409, "not trained"},
		"/api/search?key=x&collection=empty&radius=3":  {404, "not found"},
		"/api/histogram?key=x&collection=empty":        {409, "not trained"},
		"/api/search?code=0f0":                         {400, "not hexadecimal"},
		"/api/search?code=0f":                          {400, "bits"},
		"/api/search?code=0f0f&from=image":             {400, "of no modality"},
		"/api/search?key=item+1&to=sound":              {400, "sound"},
		"/api/search?key=item+1&row=3":                 {400, "of an upload"},
		"/api/search?key=item+1&after=AAAA":            {400, "cursor"},
		"/api/search?text=cat":                         {400, "from is missing"},
		"/api/search?text=cat&from=text":               {400, "no encoder"},
		"/api/search?text=cat&from=sound":              {400, "there is image, text"},
		"/api/search?text=cat&collection=given&from=x": {400, "bring their codes"},
		"/api/search?upload=AAA&from=image":            {404, "send it again"},
		"/api/search?picture=AAA":                      {400, "from is missing"},
		"/api/search?picture=AAA&from=image": {400,
			"there is no encoder of pictures"},
		"/api/search?picture=AAA&from=image&row=1":   {400, "of an upload"},
		"/api/media?picture=AAA":                     {404, "send it again"},
		"/api/media?picture=AAA&key=item+1":          {400, "no parameter"},
		"/api/search?key=item+1&where=year+<":        {400, "where: column 7"},
		"/api/search?key=item+1&where=titel+%3D+'x'": {400, "year"},
		"/api/histogram?key=nobody":                  {404, "not found"},
		"/api/item":                                  {400, "key is missing"},
		"/api/item?key=nobody":                       {404, "not found"},
		"/api/items?limit=0":                         {400, "limit"},
		"/api/items?limit=1001":                      {400, "limit"},
		"/api/items?sample=-1":                       {400, "sample"},
		"/api/items?sample=x":                        {400, "sample"},
		"/api/media?key=item+9":                      {404, "nothing there"},
		"/api/media?key=item+1&field=nope":           {404, "nothing there"},
		"/api/models?collection=nope":                {404, "no collection"},
		"/api/database?x=1":                          {400, "no parameter"},
		"/api":                                       {404, "nothing at"},
		"/api/":                                      {404, "nothing at"},
		"/api/search/":                               {404, "nothing at"},
		"/api/../api/database":                       {404, "nothing at"},
		"/../../etc/passwd":                          {404, "nothing at"},
		"/page/index.html":                           {404, "nothing at"},
		"/index.html":                                {404, "nothing at"},
		"//":                                         {404, "nothing at"},
		"/api/search?key=item+9&from=text&min-similarity=2":              {400, "-1 to 1 are possible"},
		"/api/search?key=item+9&from=text&min-similarity=x":              {400, "a number is expected"},
		"/api/search?code=0ff0&min-similarity=.5":                        {400, "a query by code has none"},
		"/api/search?key=item+9&min-similarity=.5":                       {400, "the query is by code"},
		"/api/search?key=item+9&from=text&rerank=none&min-similarity=.5": {400, "rerank=none"},
		"/api/search?from=text&text=" + longText(maxText+1):              {400, "at most"},
	} {
		refused(t, do(s, request("GET", target, nil)), want.status, want.text)
		if t.Failed() {
			t.Fatalf("of %.200s", target)
		}
	}
	for target, method := range map[string]string{
		"/api/search": "POST", "/api/uploads": "GET", "/api/item": "DELETE", "/api/stats": "G",
	} {
		w := do(s, request(method, target, nil))
		refused(t, w, 405, method)
		if w.Header().Get("Allow") == "" {
			t.Errorf("%s %s: Allow is missing", method, target)
		}
	}
}

func longText(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = 'a'
	}
	return string(b)
}

// Vectors answer before a training, and codes after it: an answer says which of both it is by.
func TestAnswerByVectorsHasNoCodes(t *testing.T) {
	d, err := db.Open(t.TempDir(), nil)
	check(t, err)
	defer d.Close()
	ctx := t.Context()
	c, err := d.CreateCollection(ctx, "main", db.Schema{Modalities: []db.Modality{{Name: "image", Dim: 16}}})
	check(t, err)
	for i, x := range synth.Embeddings(0, 300, 16, 1) {
		_, err := c.Put(ctx, &db.Item{Key: fmt.Sprint(i), Vectors: map[string][]float32{"image": x}})
		check(t, err)
	}
	s := newServer(t, d)
	type answer struct {
		Hits []struct{ Distance *int }
		Code string `json:"query_code"`
		Bits int
	}
	for _, codes := range []bool{false, true} {
		if codes {
			_, err = c.Train(ctx, db.TrainOptions{Options: fit.Options{Method: model.MethodITQ, Bits: 16}})
			check(t, err)
		}
		got := get[answer](t, s, "/api/search?k=5&key=7&from=image")
		if len(got.Hits) == 0 || (got.Code != "") != codes || (got.Bits > 0) != codes {
			t.Errorf("codes %v: %+v", codes, got)
		}
		for _, h := range got.Hits {
			if (h.Distance != nil) != codes {
				t.Errorf("codes %v: distance %v", codes, h.Distance)
			}
		}
	}
}
