package explore

import (
	"bufio"
	"cmp"
	"fmt"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/encoder"
	"github.com/fddhdb/fddhdb/db"
)

// The test program is its own encoder: started with this variable it acts as one.
const encoderVariable = "FDDHDB_TEST_ENCODER"

func TestMain(m *testing.M) {
	switch os.Getenv(encoderVariable) {
	case "lines":
		actAsEncoder()
		return
	case "files":
		actAsEncoderOfFiles()
		return
	}
	code := m.Run()
	if err := closeShared(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// actAsEncoder prints for each text the number of its letters and of its words, zeros, and how many
// texts there were.
func actAsEncoder() {
	asked := 0
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		asked++
		switch text := in.Text(); text {
		case "refuse":
			fmt.Println(`{"error":"no such word"}`)
		case "leave":
			os.Exit(3)
		case "be silent":
		default:
			fmt.Printf("%d,%d,0,0,%d\n", len(text), len(strings.Fields(text)), asked)
		}
	}
}

// testEncoder returns an encoder of texts for the modality text. A timeout of 0 is longer than any
// test.
func testEncoder(t *testing.T, timeout time.Duration) encoder.Stored {
	t.Helper()
	program, err := os.Executable()
	check(t, err)
	t.Setenv(encoderVariable, "lines")
	t.Setenv("GORACE", "atexit_sleep_ms=0")
	return encoder.Stored{Program: encoder.Program{Modality: "text", Command: []string{program},
		Timeout: cmp.Or(timeout, time.Hour)}, Collection: "main", Input: db.InputText}
}

// A search by words has the answer of a search by the vector that the program prints. A text is
// encoded once.
func TestSearchByText(t *testing.T) {
	never := encoder.Stored{Program: encoder.Program{Modality: "text", Command: []string{"/nowhere/at/all"}},
		Collection: "main", Input: db.InputText}
	s := newServer(t, sharedDatabase(t), testEncoder(t, 0))
	for range 2 {
		got := get[hitsForm](t, s, "/api/search?from=text&to=image&k=7&text="+url.QueryEscape(
			"four words, no more"))
		c, err := s.db.Collection("main")
		check(t, err)
		want, err := c.Search(t.Context(), db.Query{From: "text", To: "image", K: 7,
			Vector: []float32{19, 4, 0, 0, 1}})
		check(t, err)
		for i, h := range want.Hits {
			if got.Hits[i].Key != h.Key {
				t.Errorf("hit %d is %q, want %q", i, got.Hits[i].Key, h.Key)
			}
		}
	}
	refused(t, do(s, request("GET", "/api/search?collection=empty&from=image&text=x", nil)), 400,
		"no encoder")
	refused(t, do(s, request("GET", "/api/search?from=image&text=x", nil)), 400, "no encoder")
	s = newServer(t, sharedDatabase(t), never)
	refused(t, do(s, request("GET", "/api/search?from=text&text=x", nil)), 502, "/nowhere/at/all")
}

// What is wrong with a text, with the program, or with its time has a status of its own.
func TestSearchByTextFails(t *testing.T) {
	s := newServer(t, sharedDatabase(t), testEncoder(t, 300*time.Millisecond))
	for _, c := range []struct {
		text   string
		status int
		want   string
	}{
		{"refuse", 422, "the encoder of text: no such word"},
		{"leave", 502, "it ended"},
		{"start it again", 200, ""},
		{"be silent", 504, "no vector after 300ms"},
	} {
		w := do(s, request("GET", "/api/search?from=text&text="+url.QueryEscape(c.text), nil))
		if c.status != 200 {
			refused(t, w, c.status, c.want)
		} else if w.Code != 200 {
			t.Errorf("%s: %d, %s", c.text, w.Code, w.Body)
		}
	}
}

// A request may take as long as its encoder besides its own time.
func TestTimeOfRequestsByText(t *testing.T) {
	own := encoder.Stored{Program: encoder.Program{Modality: "text", Timeout: time.Hour}, Collection: "other",
		Input: db.InputText}
	s := newServer(t, sharedDatabase(t), own, encoder.Stored{Program: encoder.Program{Modality: "words"},
		Collection: "main", Input: db.InputText},
		encoder.Stored{Program: encoder.Program{Modality: "image"}, Collection: "main", Input: db.InputFile})
	s.requestTime = time.Minute
	for path, want := range map[string]time.Duration{
		"/api/search?from=words&text=x":                  6 * time.Minute,
		"/api/search?from=text&text=x":                   time.Minute,
		"/api/search?from=text&text=x&collection=other":  time.Minute + time.Hour,
		"/api/search?from=words&text=x&collection=other": time.Minute,
		"/api/search?from=words&key=x":                   time.Minute,
		"/api/search?from=image&picture=x":               6 * time.Minute,
		"/api/search?from=image&text=x":                  time.Minute,
		"/api/stats":                                     time.Minute,
	} {
		if got := s.limit(httptest.NewRequest("GET", path, nil)); got != want {
			t.Errorf("%s: %v instead of %v", path, got, want)
		}
	}
}
