package explore

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http/httptest"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/db"
)

// The test program is its own encoder: started with this variable it acts as one.
const encoderVariable = "FDDHDB_TEST_ENCODER"

func TestMain(m *testing.M) {
	if mode := os.Getenv(encoderVariable); mode != "" {
		if err := actAsEncoder(mode); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(3)
		}
		return
	}
	code := m.Run()
	if err := closeShared(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// actAsEncoder prints for each text the number of its letters and of its words, and
// zeros.
func actAsEncoder(mode string) error {
	vector := func(text string) string {
		return fmt.Sprintf("%d,%d 0\t0, 0", len(text), len(strings.Fields(text)))
	}
	if mode == "once" {
		text, err := io.ReadAll(os.Stdin)
		fmt.Println(vector(string(text)))
		return err
	}
	asked := 0
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		asked++
		switch text := in.Text(); text {
		case "refuse":
			fmt.Println(`{"error":"no such word"}`)
		case "leave":
			return fmt.Errorf("it hurts")
		case "be silent":
		case "nonsense":
			fmt.Println("one two three")
		case "greet": // and answer once the next text is there
			fmt.Fprintln(os.Stderr, "loading")
			fmt.Println("Welcome!")
			in.Scan()
			fmt.Println("[1,2,3,4,5]")
		case "too short":
			fmt.Println("[1,2]")
		case "two":
			fmt.Print("[1,2,3,4,5]\n[1,2,3,4,5]\n")
		case "asked":
			fmt.Printf(`[%d,0,0,0,0]`+"\n", asked)
		case "sparse":
			fmt.Println(`{"i":[1,3],"v":[2,0.5]}`)
		case "flood":
			for range maxVectorBytes/1000 + 100 {
				fmt.Print(strings.Repeat("1", 1000))
			}
			fmt.Println()
		default:
			fmt.Println(vector(text))
		}
	}
	return nil
}

func testEncoder(t *testing.T, mode string, timeout time.Duration) *encoder {
	t.Helper()
	e := openEncoder(t, mode, timeout)
	t.Cleanup(func() { check(t, e.close()) })
	return e
}

// openEncoder returns an encoder that the test closes. A timeout of 0 is longer than
// any test.
func openEncoder(t *testing.T, mode string, timeout time.Duration) *encoder {
	t.Helper()
	program, err := os.Executable()
	check(t, err)
	t.Setenv(encoderVariable, mode)
	t.Setenv("GORACE", "atexit_sleep_ms=0")
	return newEncoder(Encoder{Modality: "text", Command: []string{program}, Lines: mode == "lines", Timeout: cmp.Or(timeout, time.Hour)})
}

// The program gets a text unchanged, whatever it would mean to a shell.
func TestEncode(t *testing.T) {
	for _, mode := range []string{"once", "lines"} {
		e := testEncoder(t, mode, 0)
		for _, text := range []string{"a cat", "a cat", "$(touch x); `ls` | rm -rf \"*\" 'é", "--help", strings.Repeat("long ", 3000)} {
			x, err := e.vector(t.Context(), text)
			check(t, err)
			if want := []float32{float32(len(text)), float32(len(strings.Fields(text))), 0, 0, 0}; !slices.Equal(x.dense, want) {
				t.Errorf("%s: %.30q: %v, want %v", mode, text, x.dense, want)
			}
		}
	}
	// A line is one text, whatever it contains.
	e := testEncoder(t, "lines", 0)
	if x, err := e.vector(t.Context(), "a\nb\r\nc"); err != nil || x.dense[0] != 6 {
		t.Errorf("%v, %v", x.dense, err)
	}
	if x, err := e.vector(t.Context(), "sparse"); err != nil || !slices.Equal(x.sparse.Index, []uint32{1, 3}) {
		t.Errorf("%v, %v", x.sparse, err)
	}
}

// A failing program is reported with its own words, and started again for the next
// text.
func TestEncoderFails(t *testing.T) {
	e := testEncoder(t, "lines", 0)
	for text, want := range map[string]struct {
		status int
		text   string
	}{
		"refuse":   {422, "the encoder of text: no such word"},
		"leave":    {502, "it ended, or printed too much: it hurts"},
		"nonsense": {502, `it printed "one", number 0, where a number was expected`},
		"flood":    {502, "too much"},
	} {
		_, err := e.vector(t.Context(), text)
		if err == nil || status(err) != want.status || !strings.Contains(err.Error(), want.text) {
			t.Errorf("%s: %d, %v, want %d with %q", text, status(err), err, want.status, want.text)
		}
		if x, err := e.vector(t.Context(), "next "+text); err != nil || x.dense[1] != 2 {
			t.Errorf("after %s: %v, %v", text, x.dense, err)
		}
	}
	// A program that greets is ended: the vector after that does not belong to the next
	// text.
	if _, err := e.vector(t.Context(), "greet"); err == nil || !strings.Contains(err.Error(), `"Welcome!", number 0, where a number was expected: loading`) {
		t.Errorf("a greeting: %v", err)
	}
	if x, err := e.vector(t.Context(), "six letters"); err != nil || x.dense[0] != 11 {
		t.Errorf("after a greeting: %v, %v", x.dense, err)
	}
	// A program that prints two lines for a text would be a text behind from then on.
	if _, err := e.vector(t.Context(), "two"); err == nil || !strings.Contains(err.Error(), `it printed more than a line for a text, the first "[1,2,3,4,5]\n"`) {
		t.Errorf("two lines: %v", err)
	}
	if x, err := e.vector(t.Context(), "another"); err != nil || x.dense[0] != 7 {
		t.Errorf("after two lines: %v, %v", x.dense, err)
	}
	if _, err := newEncoder(Encoder{Command: []string{"/nowhere/at/all"}}).vector(t.Context(), "x"); err == nil || status(err) != 502 {
		t.Errorf("a program that is not there: %v", err)
	}
	if _, err := newEncoder(Encoder{Command: []string{"/nowhere/at/all"}, Lines: true}).vector(t.Context(), "x"); err == nil || status(err) != 502 {
		t.Errorf("a program that is not there: %v", err)
	}
}

// A silent program is given up, and ended with the server.
func TestEncoderIsSilent(t *testing.T) {
	e := testEncoder(t, "lines", 300*time.Millisecond)
	if _, err := e.vector(t.Context(), "the first text, which starts it, may take minutes"); err != nil {
		t.Fatal(err)
	}
	_, err := e.vector(t.Context(), "be silent")
	if err == nil || status(err) != 504 || !strings.Contains(err.Error(), "no vector after 300ms") {
		t.Errorf("%v", err)
	}
	left := openEncoder(t, "lines", time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := left.vector(ctx, "be silent"); err != context.Canceled {
		t.Errorf("who has left gets %v", err)
	}
	check(t, left.close())
	slow := openEncoder(t, "lines", time.Hour)
	failed := make(chan error)
	go func() {
		_, err := slow.vector(context.Background(), "be silent")
		failed <- err
	}()
	for len(slow.turn.places) == 0 { // until it has begun
		runtime.Gosched()
	}
	check(t, slow.close())
	if err := <-failed; err != db.ErrClosed {
		t.Errorf("at the end: %v", err)
	}
}

// A program may take longer to start than for a text, and longer than other requests
// may take.
func TestEncoderStartsSlowly(t *testing.T) {
	e := testEncoder(t, "lines", time.Nanosecond)
	for range 2 { // it is started again after a timeout
		if _, err := e.vector(t.Context(), "first"); err != nil {
			t.Fatal(err)
		}
		if _, err := e.vector(t.Context(), "be silent"); err == nil || status(err) != 504 || !strings.Contains(err.Error(), "no vector after 1ns") {
			t.Errorf("%v", err)
		}
		clear(e.kept)
	}
	s := &Server{requestTime: time.Minute, encode: map[string]*encoder{"text": e, "words": newEncoder(Encoder{Timeout: time.Hour})}}
	for path, want := range map[string]time.Duration{
		"/api/search?from=text&text=x":  time.Minute + startTimeout,
		"/api/search?from=words&text=x": time.Minute + time.Hour,
		"/api/search?from=image&text=x": time.Minute,
		"/api/search?from=text&id=x":    time.Minute,
		"/api/stats":                    time.Minute,
	} {
		if got := s.limit(httptest.NewRequest("GET", path, nil)); got != want {
			t.Errorf("%s: %v instead of %v", path, got, want)
		}
	}
}

// A client that does not wait for the vector leaves the program in step.
func TestEncoderKeepsStep(t *testing.T) {
	e := testEncoder(t, "lines", 0)
	for i := range 50 {
		ctx, cancel := context.WithCancel(t.Context())
		if i%2 == 0 {
			cancel()
		}
		text := strings.Repeat("x", i+1)
		if x, err := e.vector(ctx, text); err == nil && x.dense[0] != float32(i+1) {
			t.Fatalf("%q: %v", text, x.dense)
		}
		cancel()
	}
}

// A search by words uses the program: the answer is that to its vector.
func TestSearchByText(t *testing.T) {
	e := testEncoder(t, "once", 0)
	s := newServer(t, sharedDatabase(t), e.Encoder)
	got := get[hitsForm](t, s, "/api/search?from=text&to=image&k=7&text="+url.QueryEscape("four words, no more"))
	c, err := s.db.Collection("main")
	check(t, err)
	want, err := c.Search(t.Context(), db.Query{From: "text", To: "image", K: 7, Vector: []float32{19, 4, 0, 0, 0}})
	check(t, err)
	for i, h := range want.Hits {
		if got.Hits[i].ID != h.Key {
			t.Errorf("hit %d is %q, want %q", i, got.Hits[i].ID, h.Key)
		}
	}
	refused(t, do(s, request("GET", "/api/search?collection=empty&from=image&text=x", nil)), 400, "no encoder")
}

func FuzzParseVector(f *testing.F) {
	for _, s := range []string{"1 2", "[1,2.5]", `{"i":[1],"v":[2]}`, `{"error":"x"}`, "", ",", "[1][2]", "[1e99]", "nan", `{"i":[1],"v":[2],"x":1}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		x, err := parseVector(b)
		if (err == nil) != (x.dense != nil || x.sparse != nil) {
			t.Errorf("%q: %+v, %v", b, x, err)
		}
		for _, v := range x.dense {
			if v-v != 0 {
				t.Errorf("%q: %v", b, x.dense)
			}
		}
	})
}
