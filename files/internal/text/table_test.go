package text

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/fddhdb/fddhdb/files/internal/matrix"
	"github.com/fddhdb/fddhdb/files/table"
)

func csvOf(t testing.TB, text string) *table.Table {
	t.Helper()
	r := must(OpenCSVTable(memory(text)))(t)
	return r
}

func jsonlOf(t testing.TB, text string) *table.Table {
	return table.New("x", &jsonTable{known: reader(t, text).known})
}

// mapped reads the columns of a table, and says what they become by their names.
func mapped(t testing.TB, r *table.Table, uses map[string]table.Use) []table.Column {
	t.Helper()
	columns := must(r.Columns())(t)
	list := make([]table.Use, len(columns))
	for i, c := range columns {
		list[i] = uses[c.Name]
	}
	check(t, r.Map(list))
	return columns
}

// rows returns the items of all rows as text, and the errors of rows that are none.
func rows(t testing.TB, r table.Items) (out []string) {
	t.Helper()
	var it table.Item
	for {
		switch err := r.Next(&it); {
		case err == io.EOF:
			return out
		case err != nil:
			out = append(out, err.Error())
		default:
			labels := it.Labels
			if len(labels) == 0 {
				labels = nil
			}
			b := must(json.Marshal(map[string]any{"k": it.Key, "v": it.Vectors, "l": labels,
				"f": it.Fields}))(t)
			out = append(out, string(b))
		}
	}
}

// The same table in both formats has the same columns and items.
func TestTables(t *testing.T) {
	jsonl := jsonlOf(t, "\ufeff"+`{"id":7,"x":[0.25,-1],"tags":["a","b, c"],"n":1,"p":2,"ok":true,"is_red":1,"zip":"00501","class":3,"skip":[[1],[2]],"at":"2024-05-01","when":"2024-05-01"}
{"id":8,"x":[1e0,2],"tags":[],"n":null,"p":2.5,"ok":false,"is_red":0,"zip":"1","class":-1,"skip":"x","at":"2024-05-02 12:30:00+02","when":"soon"}

`[:])
	same := csvOf(t, "\ufeffid,x,tags,n,p,ok,is_red,zip,class,skip,at,when\r\n"+
		`7,"[0.25, -1]","['a', ""b, c""]",1,2,True,1,00501,3,"[[1],[2]]",2024-05-01,2024-05-01`+"\r\n"+
		`8,"[1e0,2]",[],,2.5,false,0,1,-1,x,2024-05-02 12:30:00+02,soon`+"\r\n")
	uses := map[string]table.Use{"id": {Role: table.AsKey}, "x": {Role: table.AsVector, Name: "image"},
		"tags": {Role: table.AsLabels}, "n": {Role: table.AsField, Name: "n", Type: "int"},
		"p":      {Role: table.AsField, Name: "price", Type: "float"},
		"ok":     {Role: table.AsField, Name: "ok", Type: "bool"},
		"at":     {Role: table.AsField, Name: "at", Type: "time"},
		"when":   {Role: table.AsField, Name: "when", Type: "string"},
		"is_red": {Role: table.AsLabel, Name: "red"}, "zip": {Role: table.AsField, Name: "zip",
			Type: "string"}, "class": {Role: table.AsLabels}}
	for _, r := range []*table.Table{jsonl, same} {
		columns := mapped(t, r, uses)
		got := map[string]string{}
		for _, c := range columns {
			got[c.Name] = c.Describe()
			if unique := c.Name == "id" || c.Name == "zip" || c.Name == "n" || c.Name == "class" ||
				c.Name == "is_red" || c.Name == "at" ||
				c.Name == "when"; c.Unique != unique && c.Name != "skip" {
				t.Errorf("%+v", c)
			}
			if flags := c.Name == "ok" || c.Name == "is_red" || c.Name == "n"; c.Flags != flags {
				t.Errorf("%+v", c)
			}
		}
		delete(got, "skip")
		if d := cmp.Diff(got, map[string]string{"id": "integers", "x": "lists of 2 numbers",
			"tags": "lists of strings", "n": "integers", "p": "numbers",
			"ok": "bools", "is_red": "integers", "zip": "strings", "class": "integers", "at": "times",
			"when": "strings"}); d != "" {
			t.Error(d)
		}
		if r.Rows() != 2 {
			t.Errorf("%d rows", r.Rows())
		}
		shape := must(r.Shape())(t)
		if d := cmp.Diff(shape, &table.Shape{Vectors: []table.Vector{{Name: "image", Dim: 2}},
			Fields: []table.Field{{Name: "n", Type: "int"}, {Name: "price", Type: "float"},
				{Name: "ok", Type: "bool"}, {Name: "zip", Type: "string"}, {Name: "at", Type: "time"},
				{Name: "when", Type: "string"}}}); d != "" {
			t.Error(d)
		}
		if d := cmp.Diff(rows(t, r), []string{
			`{"f":{"at":"2024-05-01","n":1,"ok":true,"price":2,"when":"2024-05-01","zip":"00501"},"k":"7","l":["a","b, c","red","3"],"v":{"image":[0.25,-1]}}`,
			`{"f":{"at":"2024-05-02 12:30:00+02","ok":false,"price":2.5,"when":"soon","zip":"1"},"k":"8","l":null,"v":{"image":[1,2]}}`,
		}); d != "" {
			t.Error(d)
		}
	}
}

// Lists of whole numbers are labels: classes, or if all are 0 or 1 and as long, a row of a matrix.
func TestLabelsOfNumbers(t *testing.T) {
	classes, hot, both := []string{"[3,17]", "[]", "[-1]", "[2]"}, []string{"[0,1,1]", "[0,0,0]", "[1,0,0]"},
		[]string{"[0,1]", "[1]"}
	for i, want := range [][]string{{`["3","17"]`, "null", "null", `["2"]`}, {`["1","2"]`, "null", `["0"]`},
		{`["0","1"]`, `["1"]`}} {
		lists := [][]string{classes, hot, both}[i]
		jsonl, csv := "", "c,x\n"
		for _, l := range lists {
			jsonl += `{"c":` + l + "}\n"
			csv += `"` + l + `",` + "\n"
		}
		for _, r := range []*table.Table{jsonlOf(t, jsonl), csvOf(t, csv)} {
			columns := mapped(t, r, map[string]table.Use{"c": {Role: table.AsLabels}})
			if columns[0].Hot() != (i == 1) {
				t.Errorf("%+v", columns[0])
			}
			for j, got := range rows(t, r) {
				if !strings.Contains(got, `"l":`+want[j]+",") {
					t.Errorf("%s: %s, want %s", lists[j], got, want[j])
				}
			}
		}
	}
	r := jsonlOf(t, `{"c":[1.5]}`)
	if columns, err := r.Columns(); err != nil || columns[0].Suits(table.Use{Role: table.AsLabels}) == nil {
		t.Errorf("%+v, %v", columns, err)
	}
	long := strings.Repeat(`{"c":[0,1]}`+"\n", table.LookRows)
	r = jsonlOf(t, long+`{"c":[0,2]}`)
	mapped(t, r, map[string]table.Use{"c": {Role: table.AsLabels}})
	if got := rows(t, r); !strings.Contains(got[table.LookRows], `"c": is neither true, 1, false nor 0`) {
		t.Error(got[table.LookRows])
	}
}

// Whole numbers are labels, also written as 1.0, as pandas does where some are missing; others are none.
func TestLabelsOfFloats(t *testing.T) {
	cells := []string{"1.0", "", "2.0", "-1.0", "3e2", "-7.0"}
	want := []string{`["1"]`, "null", `["2"]`, "null", `["300"]`, `["-7"]`}
	jsonl, csv := "", "c,x\n"
	for _, cell := range cells {
		csv += cell + ",\n"
		if cell == "" {
			cell = "NaN"
		}
		jsonl += `{"c":` + cell + "}\n"
	}
	for i, r := range []*table.Table{jsonlOf(t, jsonl), csvOf(t, csv)} {
		columns := mapped(t, r, map[string]table.Use{"c": {Role: table.AsLabels}})
		if columns[0].Describe() != "numbers" {
			t.Errorf("%+v", columns[0])
		}
		for j, got := range rows(t, r) {
			if !strings.Contains(got, `"l":`+want[j]+",") {
				t.Errorf("table %d, %q: %s, want %s", i, cells[j], got, want[j])
			}
		}
	}
	for _, r := range []*table.Table{jsonlOf(t, `{"c":1.0}`+"\n"+`{"c":1.5}`), csvOf(t, "c,x\n1.0,\n1.5,\n"),
		jsonlOf(t, `{"c":1e17}`)} {
		columns := must(r.Columns())(t)
		if err := columns[0].Suits(table.Use{Role: table.AsLabels}); err == nil ||
			!strings.Contains(err.Error(), `column "c" has numbers: labels are strings or whole numbers`) {
			t.Error(err)
		}
	}
	many := slicesRepeat("1.0", table.LookRows)
	for _, r := range []*table.Table{jsonlOf(t, `{"c":`+strings.Join(many, "}\n{\"c\":")+"}\n"+`{"c":1.5}`),
		csvOf(t, "c,x\n"+strings.Join(many, ",\n")+",\n1.5,\n")} {
		mapped(t, r, map[string]table.Use{"c": {Role: table.AsLabels}})
		if got := rows(t, r); !strings.Contains(got[table.LookRows],
			`"c": is "1.5": labels are strings, or whole numbers`) {
			t.Error(got[table.LookRows])
		}
	}
}

// A string is one label, or with a separator several. A list of strings has a label each in any case.
func TestLabelsBetweenSeparators(t *testing.T) {
	for separator, want := range map[string][]string{
		"":  {`["red, new"]`, `["a; b ;,c"]`, `["x"]`, `["p, q","r"]`, "null"},
		",": {`["red","new"]`, `["a; b ;","c"]`, `["x"]`, `["p, q","r"]`, "null"},
		";": {`["red, new"]`, `["a","b",",c"]`, `["x"]`, `["p, q","r"]`, "null"},
	} {
		jsonl := `{"c":"red, new"}` + "\n" + `{"c":"a; b ;,c"}` + "\n" + `{"c":"x"}` + "\n" +
			`{"c":["p, q","r"]}` + "\n" + `{"c":""}`
		csv := "c,x\n" + `"red, new",` + "\n" + `"a; b ;,c",` + "\nx,\n" + `"['p, q', 'r']",` + "\n,\n"
		for i, r := range []*table.Table{jsonlOf(t, jsonl), csvOf(t, csv)} {
			use := table.Use{Role: table.AsLabels, Separator: separator}
			if columns := mapped(t, r, map[string]table.Use{"c": use}); columns[0].Joined != "red, new" {
				t.Errorf("%+v", columns[0])
			}
			for j, got := range rows(t, r) {
				if !strings.Contains(got, `"l":`+want[j]+",") {
					t.Errorf("table %d, separator %q: %s, want %s", i, separator, got, want[j])
				}
			}
		}
	}
	for text, want := range map[string]string{"a,b": ",", "a;b, c": ";", "a, b|c": "|", "a": "", "": "",
		",a": "", "a ; ": "", "|a,b": ","} {
		if got := table.Separator(text); got != want {
			t.Errorf("%q is separated by %q, want %q", text, got, want)
		}
	}
}

// What the first values of a column are decides; a number may still turn out not to be whole, and a cell of a
// .csv to be text.
func TestLook(t *testing.T) {
	for text, want := range map[string]string{
		`[1] [2]`:              "lists of 1 numbers",
		`[1] [2,3]`:            "lists of numbers",
		`[] [2,3] []`:          "lists of 2 numbers",
		`[] ["a"]`:             "lists of strings",
		`[] []`:                "empty lists",
		`["a"] [1]`:            "values of several types, lists of strings and, in line 2, lists of numbers",
		`1 "a"`:                "values of several types, integers and, in line 2, strings",
		`1 {} [1]`:             "values of several types, integers and, in line 2, objects",
		`{} {}`:                "objects",
		`[1,"a"]`:              "lists of other things",
		`null NaN`:             "no value",
		`1 1.5`:                "numbers",
		`1 NaN`:                "integers",
		`true false`:           "bools",
		`true 1`:               "values of several types, bools and, in line 2, integers",
		`#1 1.5`:               "numbers",
		`#1 "a"`:               "integers",
		`#[1] [1,2]`:           "lists of 1 numbers",
		`[1,2] [3] [4]`:        "lists of 1 numbers", // one of a few, and one in ten, is a mistake
		`"x" [3] [4]`:          "lists of 1 numbers",
		`[3] [4] {}`:           "lists of 1 numbers",
		`[3] [4,NaN] [null,5]`: "lists of 2 numbers",
		`[3] "x" "y" [4]`:      "values of several types, lists of numbers and, in line 2, strings",
		`[3] [4] [5,6] [7,8]`:  "lists of numbers",
		`123456789012345678 1`: "integers",
	} {
		var b strings.Builder
		if rest, ok := strings.CutPrefix(text, "#"); ok {
			text = rest
			for range table.LookRows {
				fmt.Fprintf(&b, `{"a":%s}`+"\n", strings.Fields(text)[0])
			}
		}
		for _, v := range strings.Fields(text) {
			fmt.Fprintf(&b, `{"a":%s}`+"\n", v)
		}
		columns, err := jsonlOf(t, b.String()).Columns()
		if err != nil || columns[0].Describe() != want {
			t.Errorf("%s: %v, %v, want %s", text, columns, err, want)
		}
	}
	many := strings.Repeat("1\n", table.LookRows)
	for text, want := range map[string]string{
		"007 1": "strings", "1 2": "integers", "1 2.5": "numbers", "1 x": "strings", "true 1": "strings",
		"True false": "bools", "0x10 1_0": "strings",
		"[1.] [2.e-3]": "lists of 1 numbers", "[1] [NaN] [-inf]": "lists of 1 numbers",
		"[NaN,1] [1]": "lists of numbers",
		"NaN 1":       "strings", "inf 1": "strings", "-5 5": "integers", "-5 +5": "strings",
		"0 0.5":                  "numbers",
		"99999999999999999999 1": "strings",
		"[1,2] x":                "strings", "x [1,2]": "strings", "[1,2": "strings", many + " x": "strings",
		many + " 1.5": "numbers", many + " [1,2]": "strings", "['a'] b": "strings",
	} {
		columns, err := csvOf(t, "a,b\n"+strings.ReplaceAll(quoted(strings.Fields(text)), "\n",
			",\n")).Columns()
		if err != nil || columns[0].Describe() != want {
			t.Errorf("%s: %v, %v, want %s", text, columns, err, want)
		}
	}
}

// quoted returns cells as lines of a .csv.
func quoted(cells []string) string {
	var b strings.Builder
	w := csv.NewWriter(&b)
	for _, c := range cells {
		_ = w.Write([]string{c}) // into memory
	}
	w.Flush()
	return b.String()
}

// A wrong row costs that row, and says where it is.
func TestRowsThatAreWrong(t *testing.T) {
	uses := map[string]table.Use{"id": {Role: table.AsKey}, "x": {Role: table.AsVector, Name: "x"},
		"n": {Role: table.AsField, Name: "n", Type: "int"}, "l": {Role: table.AsLabels},
		"f": {Role: table.AsLabel, Name: "f"}, "b": {Role: table.AsField, Name: "b", Type: "bool"}}
	good := func(line string) []string { return append(slicesRepeat(line, table.LookRows), line) }
	jsonl := good(`{"id":"a","x":[1,2],"n":1,"l":1,"f":0,"b":true}`)
	wrong := map[string]string{
		`{"id":""}`:               `"id": is empty: an item needs a key`,
		`{"id":1.5}`:              `"id": is a number, "1.5": keys are strings, integers or times`,
		`{"id":[1]}`:              `"id": is a list: keys are strings, integers or times`,
		`{"x":"[1]"}`:             `"x": is a string, "[1]", where a vector is expected`,
		`{"x":[1,NaN]}`:           `"x": number 1: NaN is not a finite number`,
		`{"n":[1]}`:               `"n": is a list, where a string, a number or a bool is expected`,
		`{"l":{}}`:                `"l": is an object: labels are strings, or whole numbers`,
		`{"f":2}`:                 `"f": is neither true, 1, false nor 0`,
		`{"id":"a","id":"b"}`:     `has "id" twice`,
		`{"id":"a"} x`:            `the end is expected`,
		`{"id":`:                  `a value is expected where the text ends`,
		`[1]`:                     `is an array, where an object is expected`,
		` `:                       `is blank`,
		`{"l":["a",["b"]]}`:       `"l": is a list`,
		`{"id":"` + "\xff" + `"}`: `not UTF-8`,
	}
	for line, want := range wrong {
		r := jsonlOf(t, strings.Join(append(jsonl, line, `{"id":"z"}`), "\n"))
		mapped(t, r, uses)
		got := rows(t, r)
		place := fmt.Sprintf("x: line %d: ", len(jsonl)+1)
		if len(got) != len(jsonl)+2 || !strings.HasPrefix(got[len(jsonl)], place) ||
			!strings.Contains(got[len(jsonl)], want) || !strings.Contains(got[len(jsonl)+1], `"k":"z"`) {
			t.Errorf("%s: %q, want %s", line, got[len(jsonl)], want)
		}
	}
	lines := good(`a,"[1,2]",1,1,0,true`)
	for line, want := range map[string]string{
		`,"[1,2]",1,1,0,true`:         `"id": is empty`,
		`b,"[1,x]",1,1,0,true`:        `"x": byte 3: a number is expected`,
		`b,"[1,2] 3",1,1,0,true`:      `"x": byte 6: the end is expected`,
		`b,1,1,1,0,true`:              `"x": is a string, "1", where a vector is expected`,
		`b,"[1,2]",1,1,7,true`:        `"f": is neither true`,
		`b,"[1,2]",1,1,0`:             "has another number of columns than the header, which has 6",
		`b,"[1,2]"x,1,1,0,true`:       "follows a closing quote",
		`b,"[1,2]",1,` + "\xff,0,":    `"l": is not UTF-8 text`,
		"\xff" + `,"[1,2]",1,1,0,yes`: `"id": is not UTF-8 text`,
	} {
		r := csvOf(t, "id,x,n,l,f,b\n"+strings.Join(append(lines, line, `z,,,,,`), "\n"))
		mapped(t, r, uses)
		got := rows(t, r)
		place := fmt.Sprintf("x: line %d: ", len(lines)+2)
		if len(got) != len(lines)+2 || r.Rows() != len(got) || !strings.HasPrefix(got[len(lines)], place) ||
			!strings.Contains(got[len(lines)], want) || !strings.Contains(got[len(lines)+1], `"k":"z"`) {
			t.Errorf("%s: %q, want %s", line, got[len(lines)], want)
		}
	}
}

func slicesRepeat(s string, n int) []string {
	return strings.Split(strings.Repeat(s+"\n", n-1)+s, "\n")
}

// Files that are no table say why.
func TestHeadersThatAreWrong(t *testing.T) {
	for text, want := range map[string]string{
		"":                                       "is empty",
		"1,2\n3,4\n":                             "has only numbers",
		"a,b,a\n":                                `has the column "a" twice`,
		"a,\xff\n":                               "not UTF-8",
		"a,\"b\n1,2\n":                           "a quote is not closed",
		strings.Repeat("a,", maxColumns) + "b\n": "has more than 10,000 columns",
	} {
		if _, err := OpenCSVTable(memory(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v, want %s", text, err, want)
		}
	}
	var b strings.Builder
	for i := range maxColumns + 1 {
		fmt.Fprintf(&b, `{"a%d":1}`+"\n", i)
	}
	if _, err := jsonlOf(t, b.String()).Columns(); err == nil ||
		!strings.Contains(err.Error(), "x: line 10001: brings one column more than the 10000") {
		t.Error(err)
	}
	// A quote that is not closed does not make the rest of the file one cell.
	r := csvOf(t, "a,b\n1,\""+strings.Repeat(strings.Repeat("0", 1<<20)+"\n", Whole>>20+1))
	if _, err := r.Columns(); err == nil ||
		!strings.Contains(err.Error(), "is longer than 64 MiB: is a quote not closed?") {
		t.Error(err)
	}
}

// A column does not become what it has no values for.
func TestUsesThatDoNotSuit(t *testing.T) {
	const text = `{"s":"a","i":2,"f":1.5,"b":true,"l":["a"],"v":[1],"o":{}}`
	for role, columns := range map[table.Role]string{table.AsKey: "si", table.AsLabels: "silv",
		table.AsLabel: "b", table.AsVector: "v", table.AsField: "sifb", table.AsPayload: "", table.AsCode: "",
		table.LeftAside: "sifblvo"} {
		for _, name := range strings.Split("sifblvo", "") {
			r := jsonlOf(t, text)
			columns, suits := columns, strings.Contains(columns, name)
			all := must(r.Columns())(t)
			uses := make([]table.Use, len(all))
			for i, c := range all {
				if c.Name == name {
					uses[i] = table.Use{Role: role, Name: "n"}
				}
			}
			if err := r.Map(uses); (err == nil) != suits ||
				err != nil && !strings.HasPrefix(err.Error(), `x: column "`+name+`" has `) {
				t.Errorf("role %d of %q (%s suit): %v", role, name, columns, err)
			}
		}
	}
}

// Lines as export writes them are items, other objects are rows of a table.
func TestLayoutOfLines(t *testing.T) {
	for text, want := range map[string]bool{
		`{"key":"a","vectors":{"x":[1]}}`:             false,
		`{"key":"a","fields":{"x":1},"title":"b"}`:    false,
		`{"key":"a","labels":["b"]}`:                  false,
		`{"key":"a","code":"00","code_from":"given"}`: false,
		"{}\n{}":                         false,
		"no JSON":                        false,
		"":                               false,
		`{"id":"a","x":[1]}`:             true,
		`{"key":"a","image":[1]}`:        true,
		"bad\n" + `{"title":"b"}`:        true,
		`{"title":"b","vectors":[1,2]}`:  true,
		`{"key":"a","vector":{"x":[1]}}`: false,
		strings.Repeat("{}\n", layoutLines) + `{"title":"b"}`: false,
	} {
		r := reader(t, text)
		got := isTable(r.known)
		if r.rewind(Whole); got != want {
			t.Errorf("%.60q: %v", text, got)
		}
		n := 0
		for range rows(t, r) {
			n++
		}
		if n != r.Rows() {
			t.Errorf("%.60q: %d rows of %d", text, n, r.Rows())
		}
	}
}

func TestListsOfStrings(t *testing.T) {
	for text, want := range map[string][]string{
		`["a","b\"c"]`: {"a", `b"c`}, `['a', 'b']`: {"a", "b"}, `['it\'s', "it's"]`: {"it's", "it's"},
		` [ 'a' ] `: {"a"}, `['a,b']`: {"a,b"},
		`[]`: nil, `['a'`: nil, `['a' 'b']`: nil, `['a',]`: nil, `[a]`: nil, `['a`: nil, `[1]`: nil, `a`: nil,
		``: nil, `['a'] x`: nil, `["a",1]`: nil,
	} {
		got, bare, ok := stringList([]byte(text))
		if ok = ok && !bare && len(got) > 0; ok != (want != nil) || ok && !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q, %v", text, got, ok)
		}
	}
}

// An array of numbers is one as JSON, Python or numpy writes it, with values that are none; not what numpy
// has cut, and not names.
func TestCellNumbers(t *testing.T) {
	for cell, want := range map[string]string{
		"[1,2]": "1 2", "[ 1.  -2.5e-01\n  3. ]": "1. -2.5e-01 3.", "[1, NaN, None]": "1 NaN None",
		"[inf 1 -inf nan]": "inf 1 -inf nan", "[]": "", " [+1 .5] ": "+1 .5",
		"[1 ... 2]": "cut", "[1, 2, ..., 3]": "cut", "[... 1]": "no", "[NaN]": "no", "[None, None]": "no",
		"[1,,2]": "no", "[1 a]": "no", "[0x10]": "no", "[[1 2]]": "no", "[1": "no", "1 2": "no", "": "no",
		"[1_0]": "no", "[1;2]": "no",
	} {
		numbers, cut, ok := cellNumbers([]byte(cell))
		got := string(bytes.Join(numbers, []byte(" ")))
		switch {
		case cut:
			got = "cut"
		case !ok:
			got = "no"
		}
		if got != want {
			t.Errorf("%q: %q, want %q", cell, got, want)
		}
	}
}

// A vector may have a column for each number, in any order.
func TestWideTables(t *testing.T) {
	uses := map[string]table.Use{"id": {Role: table.AsKey}}
	for at, name := range []string{"b", "a"} {
		uses[name] = table.Use{Role: table.AsElement, Name: "v", At: at}
	}
	csv := csvOf(t, "a,b,id\n1,2,x\n3.5,,y\n,,z\n1,no,w\n1,1e99,u\n")
	jsonl := jsonlOf(t, `{"a":1,"b":2,"id":"x"}`+"\n"+`{"a":3.5,"b":null,"id":"y"}`+"\n"+`{"id":"z"}`+"\n"+
		`{"id":"w","a":1,"b":[2]}`+"\n"+`{"id":"u","a":1,"b":1e99}`)
	for _, r := range []*table.Table{csv, jsonl} {
		columns := must(r.Columns())(t)
		list := make([]table.Use, len(columns))
		for i, c := range columns {
			if list[i] = uses[c.Name]; c.Name != "id" {
				list[i].Role = table.AsElement
			}
		}
		check(t, r.Map(list))
		shape := must(r.Shape())(t)
		if len(shape.Vectors) != 1 || shape.Vectors[0] != (table.Vector{Name: "v", Dim: 2}) {
			t.Errorf("%+v", shape)
		}
		got := rows(t, r)
		for i, want := range []string{`"k":"x","l":null,"v":{"v":[2,1]}`,
			`: key "y": column "b": is empty, where a number of the vector "v" is expected`,
			`"k":"z","l":null,"v":{}`, `: key "w": column "b": `,
			`: key "u": column "b": "1e99" is too large for float32`} {
			if !strings.Contains(got[i], want) {
				t.Errorf("%s, want %s", got[i], want)
			}
		}
	}
	again := csvOf(t, "a,b\n1,2\n")
	_ = must(again.Columns())(t)
	if err := again.Map([]table.Use{{Role: table.AsElement, Name: "v"},
		{Role: table.AsElement, Name: "v", At: 2}}); err == nil ||
		err.Error() != `x: the vector "v" has no column for number 1` {
		t.Error(err)
	}
}

// FuzzTable reads any bytes as a table of either format, its columns used in any way.
func FuzzTable(f *testing.F) {
	f.Add([]byte("id,x,tags\n1,\"[1,2]\",\"['a']\"\n2,,b\n\"\n"), false, uint8(0))
	f.Add([]byte("a,b\n1,true\n0,\n\n2"), false, uint8(3))
	f.Add([]byte("a;b\n[1. 2.5e-3\n -0.];7\n[nan 1 2];x\n[1 ... 2]"), false, uint8(2))
	f.Add([]byte(`{"id":7,"x":[0.25,-1],"tags":["a"],"n":null,"p":NaN}`+"\n"+`{"x":[1],"id":1.5,"tags":-1}`),
		true, uint8(1))
	f.Add([]byte(`{"a":true,"a":1}`+"\n{\n[]"), true, uint8(2))
	f.Fuzz(func(t *testing.T, b []byte, lines bool, turn uint8) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		open, array := OpenCSVTable, lines && isArray(memory(string(b)))
		if lines {
			open = OpenJSONLTable
		}
		r, err := open(memory(string(b)))
		if err != nil {
			return
		}
		var e *matrix.Error
		columns, err := r.Columns()
		if err != nil {
			if !errors.As(err, &e) || e.File != "x" {
				t.Errorf("%v is no error about the file", err)
			}
			return
		}
		uses := make([]table.Use, len(columns))
		for i := range columns {
			for j := range 9 {
				u := table.Use{Role: table.Role((int(turn) + i + j) % 9), Name: fmt.Sprint(i),
					Type: columns[i].Type}
				if columns[i].Suits(u) == nil {
					uses[i] = u
					break
				}
			}
		}
		check(t, r.Map(uses))
		if _, err := r.Shape(); err != nil {
			t.Fatal(err)
		}
		var it table.Item
		for i := 0; ; i++ {
			err := r.Next(&it)
			if err == io.EOF {
				if i != r.Rows() {
					t.Errorf("%d rows of %d", i, r.Rows())
				}
				break
			}
			if err != nil {
				if !errors.As(err, &e) || e.File != "x" || e.Row != i || !array && e.Line < 1 {
					t.Fatalf("row %d: %v", i, err)
				}
				continue
			}
			for _, x := range it.Vectors {
				for _, v := range x {
					if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
						t.Errorf("%v is among %v", v, x)
					}
				}
			}
			for _, l := range append(it.Labels, it.Key) {
				if !utf8.ValidString(l) {
					t.Errorf("%q is no text", l)
				}
			}
		}
		runtime.ReadMemStats(&after)
		// Buffers of the passes, columns, and the errors of lines.
		if n := after.TotalAlloc - before.TotalAlloc; n > uint64(6<<20+4000*len(b)) {
			t.Errorf("%d bytes allocated for %d", n, len(b))
		}
	})
}

// DuckDB writes lists in which some strings have no quotes. A column of such lists alone becomes labels, an
// element each, or a field of text. In a column with other text they are text.
func TestListsWithoutQuotes(t *testing.T) {
	r := csvOf(t, "id,tags,title,x,level\n1,\"[red, very new, NULL]\",[untitled],\"[1, 2]\",[INFO]\n2,[],a [b],\"[3, 4]\",[WARN]\n"+
		"3,\"[a, 'x:y', \"\"it's\"\"]\",[],\"[5, null]\",[INFO]\n4,[7up],,,\n5,[ ],\"[a, [b]]\",,[INFO]\n")
	columns := mapped(t, r, map[string]table.Use{"id": {Role: table.AsKey}, "tags": {Role: table.AsLabels},
		"title": {Role: table.AsField, Name: "title", Type: "string"},
		"x":     {Role: table.AsVector, Name: "x"}, "level": {Role: table.AsField, Name: "level",
			Type: "string"}})
	var got []string
	for _, c := range columns {
		got = append(got, fmt.Sprint(c.Describe(), " ", c.Listed, c.Joined))
	}
	if d := cmp.Diff(got, []string{"integers false", "strings true", "strings false[a, [b]]",
		"lists of 2 numbers false", "strings true"}); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(rows(t, r), []string{
		`{"f":{"level":"[INFO]","title":"[untitled]"},"k":"1","l":["red","very new"],"v":{"x":[1,2]}}`,
		`{"f":{"level":"[WARN]","title":"a [b]"},"k":"2","l":null,"v":{"x":[3,4]}}`,
		`x: line 4: key "3": column "x": number 1: is null, where a number is expected`,
		`{"f":{},"k":"4","l":["7up"],"v":{}}`,
		`{"f":{"level":"[INFO]","title":"[a, [b]]"},"k":"5","l":null,"v":{}}`,
	}); d != "" {
		t.Error(d)
	}
	for text, want := range map[string]string{
		"[]": "[] false true", "[ ]": "[] false true", "[a, 'x:y']": "[a x:y] true true",
		"['a', \"b\"]": "[a b] false true", "[NULL]": "[] true true", "['NULL']": "[NULL] false true",
		"[a": "[] false false", "a]": "[] false false", "[a, ]": "[] false false", "[, a]": "[] false false",
		"[a b: c]": "[] false false", "['a' b]": "[] false false", "['a]": "[] false false",
		"[[a], b]": "[] false false", "[a, 'b\\'c']": "[a b'c] true true",
	} {
		list, bare, ok := textList(text)
		if got := fmt.Sprint(list, " ", bare, " ", ok); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
