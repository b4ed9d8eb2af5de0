package serve

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/internal/rest"
)

// Many queries are answered in their order, however many parts they are answered in, as each is alone.
func TestMany(t *testing.T) {
	var items []*db.Item
	for i := range 8 {
		x := make([]float32, 8)
		x[i], x[(i+1)%8] = 1, .5
		items = append(items, &db.Item{Key: fmt.Sprint(i), Vectors: map[string][]float32{"x": x}})
	}
	s := mainServer(t, Options{MaxK: 20, Requests: 1}, items...)
	many := func(lines ...string) (status int, answers []string) {
		t.Helper()
		r := httptest.NewRequest("POST", "/v1/photos/collections/main:search-many",
			strings.NewReader(strings.Join(lines, "\n")))
		r.Header.Set("Content-Type", ndjson)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		for in := bufio.NewScanner(w.Body); in.Scan(); {
			answers = append(answers, in.Text())
		}
		return w.Code, answers
	}
	var queries []string
	for i := range 200 {
		// Vectors count tenfold: these are answered two at a time, and those of the others twenty.
		include := []string{"labels"}
		if i > 150 {
			include = []string{"vectors"}
		}
		b, err := json.Marshal(map[string]any{"key": fmt.Sprint(i % 8), "k": 1 + i%2, "include": include})
		if err != nil {
			t.Fatal(err)
		}
		queries = append(queries, string(b))
	}
	status, answers := many(queries...)
	if status != http.StatusOK || len(answers) != len(queries) {
		t.Fatalf("%d, %d answers: %s", status, len(answers), answers[0])
	}
	for i, q := range queries {
		if alone := ask(s, "POST", "/v1/photos/collections/main:search", "", q); alone.Code != http.StatusOK ||
			strings.TrimSpace(alone.Body.String()) != answers[i] {
			t.Errorf("query %d: %s, alone %s", i, answers[i], alone.Body)
		}
	}
	// What explains one answer does not depend on the queries beside it.
	_, answers = many(`{"key":"0","k":1}`, `{"key":"0","k":1,"include":["explain"]}`, `{"key":"1","k":1}`)
	for i, with := range []bool{false, true, false} {
		if strings.Contains(answers[i], `"explain"`) != with {
			t.Errorf("answer %d: %s", i, answers[i])
		}
	}
	// An error behind answers is the last line.
	queries[170] = `{"key":"nobody"}`
	status, answers = many(queries...)
	var last rest.StreamError
	if err := json.Unmarshal([]byte(answers[len(answers)-1]), &last); err != nil || status != http.StatusOK ||
		last.Error == nil || !strings.Contains(answers[len(answers)-1], "query 170") {
		t.Errorf("%d, %s, %v", status, answers[len(answers)-1], err)
	}
	for body, want := range map[string]struct {
		status int
		text   string
	}{
		"":                                    {200, ""},
		`{"key":"0"}` + "\n" + `{"kay":"1"}`:  {400, `query 1: unknown field \"kay\"`},
		`{"key":"0"}` + "\n" + `{"key":"9"}`:  {404, "query 1"},
		`{"key":"0"} {"key":`:                 {400, "query 1"},
		`{"key":"0","k":21}`:                  {413, "k is 21"},
		`{"key":"0","k":-1}`:                  {400, "query 0"},
		`{"key":"0","radius":-1}`:             {400, "0 or more bits"},
		`{"text":"a"}`:                        {400, "text and facet_limit"},
		`{"key":"0","facet_limit":1}`:         {400, "text and facet_limit"},
		strings.Repeat(`{"key":"0"}`, 10_001): {413, "send fewer"},
	} {
		status, answers := many(body)
		if got := strings.Join(answers, "\n"); status != want.status || !strings.Contains(got, want.text) {
			t.Errorf("%.60s: %d %s", body, status, got)
		}
	}
}
