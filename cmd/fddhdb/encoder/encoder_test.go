package encoder

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
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
	mode := os.Getenv(encoderVariable)
	if mode == "" {
		os.Exit(m.Run())
	}
	if err := actAsEncoder(mode); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
}

// actAsEncoder prints for each text the number of its letters and of its words, and
// zeros.
func actAsEncoder(mode string) error {
	vector := func(text string) string {
		return fmt.Sprintf("%d,%d 0\t0, 0", len(text), len(strings.Fields(text)))
	}
	switch mode {
	case "hold": // a child, which holds the pipes of its parent open
		time.Sleep(time.Hour)
	case "at the end": // as programs that do not flush their output
		var all strings.Builder
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			fmt.Fprintln(&all, vector(in.Text()))
			if in.Text() == "twice" {
				fmt.Fprintln(&all, vector(in.Text()))
			}
		}
		_, err := io.WriteString(os.Stdout, all.String())
		return err
	case "blocks": // one text, and then five at a time
		n, texts := 1, []string{}
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			if texts = append(texts, in.Text()); len(texts) < n {
				continue
			}
			for _, text := range texts {
				fmt.Println(vector(text))
			}
			n, texts = 5, nil
		}
		return nil
	}
	asked := 0
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		asked++
		switch text := in.Text(); text {
		case "refuse":
			fmt.Println(`{"error":"no such word"}`)
		case "leave":
			return fmt.Errorf("it hurts")
		case "leave silently":
			return nil
		case "think":
			fmt.Fprintln(os.Stderr, "thinking")
			fmt.Println(vector(text))
		case "be silent":
		case "nothing":
			fmt.Println()
		case "nonsense":
			fmt.Println("one two three")
		case "nan":
			fmt.Println("1,2,3,4,nan")
		case "json nan":
			fmt.Println("[1,2,3,4,NaN]")
		case "greet": // and answer once the next text is there
			fmt.Fprintln(os.Stderr, "loading")
			fmt.Println("Welcome!")
			in.Scan()
			fmt.Println("[1,2,3,4,5]")
		case "too short":
			fmt.Println("[1,2]")
		case "beyond":
			fmt.Println(`{"i":[1,5],"v":[1,1]}`)
		case "two":
			fmt.Print("[1,2,3,4,5]\n[1,2,3,4,5]\n")
		case "asked":
			fmt.Printf(`[%d,0,0,0,0]`+"\n", asked)
		case "pid":
			fmt.Printf("%d,%d,0,0,0\n", os.Getpid()>>12, os.Getpid()&0xfff)
		case "sparse":
			fmt.Println(`{"i":[1,3],"v":[2,0.5]}`)
		case "flood":
			for range maxVectorBytes/1000 + 100 {
				fmt.Print(strings.Repeat("1", 1000))
			}
			fmt.Println()
		case "endless":
			for {
				if _, err := fmt.Print("[1,2,3,4,5]\n[1,2,3,4,5]\n"); err != nil {
					return err
				}
			}
		case "hang":
			time.Sleep(time.Hour)
		case "have a child":
			program, err := os.Executable()
			if err != nil {
				return err
			}
			child := exec.Command(program)
			child.Env = append(os.Environ(), encoderVariable+"=hold")
			child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
			if err := child.Start(); err != nil {
				return err
			}
			fmt.Fprintf(os.Stderr, "child %d\n", child.Process.Pid)
			fmt.Println(vector(text))
		default:
			fmt.Println(vector(text))
		}
	}
	return nil
}

const dim = 5

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func testEncoder(t *testing.T, mode string, timeout time.Duration) *Encoder {
	t.Helper()
	e := openEncoder(t, mode, timeout)
	t.Cleanup(e.Close)
	return e
}

// openEncoder returns an encoder that the test closes. A timeout of 0 is longer than
// any test.
func openEncoder(t *testing.T, mode string, timeout time.Duration) *Encoder {
	t.Helper()
	program, err := os.Executable()
	check(t, err)
	t.Setenv(encoderVariable, mode)
	t.Setenv("GORACE", "atexit_sleep_ms=0")
	return New(Program{Modality: "text", Command: []string{program}, Timeout: cmp.Or(timeout, time.Hour)})
}

// vector encodes one text.
func vector(ctx context.Context, e *Encoder, text string) (Vector, error) {
	all, err := e.Encode(ctx, dim, []string{text})
	if err != nil {
		return Vector{}, err
	}
	return all[0], nil
}

// fails checks the reason of an error and its text.
func fails(t *testing.T, err error, reason Reason, text string) {
	t.Helper()
	of, is := errors.AsType[*Error](err)
	if !is || of.Reason != reason || !strings.HasPrefix(err.Error(), "the encoder of text") ||
		!strings.Contains(err.Error(), text) {
		t.Errorf("%v, want reason %d with %q", err, reason, text)
	}
}

// The program gets a text unchanged, whatever it would mean to a shell.
func TestEncode(t *testing.T) {
	e := testEncoder(t, "lines", 0)
	for _, text := range []string{"a cat", "a cat", "$(touch x); `ls` | rm -rf \"*\" 'é", "--help",
		strings.Repeat("long ", 3000)} {
		x, err := vector(t.Context(), e, text)
		check(t, err)
		if want := []float32{float32(len(text)), float32(len(strings.Fields(text))), 0, 0, 0}; !slices.Equal(
			x.Dense, want) {
			t.Errorf("%.30q: %v, want %v", text, x.Dense, want)
		}
	}
	// A line is one text, whatever it contains.
	if x, err := vector(t.Context(), e, "a\nb\r\nc"); err != nil || x.Dense[0] != 6 {
		t.Errorf("%v, %v", x.Dense, err)
	}
	if x, err := vector(t.Context(), e, "sparse"); err != nil ||
		!slices.Equal(x.Sparse.Index, []uint32{1, 3}) {
		t.Errorf("%v, %v", x.Sparse, err)
	}
}

// Many texts are sent at once, in order, also to a program that answers to several together, and
// more than its pipes hold.
func TestEncodeMany(t *testing.T) {
	long := make([]string, 2000)
	for i := range long {
		long[i] = strings.Repeat("x", i)
	}
	for mode, texts := range map[string][]string{"lines": long, "blocks": long[:11]} {
		e := testEncoder(t, mode, 0)
		all, err := e.Encode(t.Context(), dim, texts)
		check(t, err)
		for i, text := range texts {
			if got := int(all[i].Dense[0]); got != len(text) {
				t.Fatalf("%s: text %d of %d letters: %d", mode, i, len(text), got)
			}
		}
	}
	e := testEncoder(t, "lines", 0)
	if all, err := e.Encode(t.Context(), dim, nil); err != nil || len(all) != 0 {
		t.Errorf("of no texts: %v, %v", all, err)
	}
	// A text that is refused is named, and the program is in step behind the others.
	_, err := e.Encode(t.Context(), dim, []string{"a", "refuse", "too short", "b"})
	fails(t, err, Refused, `the encoder of text: for "refuse": no such word`)
	if x, err := vector(t.Context(), e, "asked"); err != nil || x.Dense[0] != 5 {
		t.Errorf("%v, %v", x.Dense, err)
	}
}

// Each tells which inputs are refused, and asks once for each.
func TestEach(t *testing.T) {
	e := testEncoder(t, "lines", 0)
	all, refused, err := e.Each(t.Context(), dim, []string{"a", "refuse", "bb", "refuse"})
	check(t, err)
	for i, want := range []float32{1, 0, 2, 0} {
		if want == 0 {
			fails(t, refused[i], Refused, "the encoder of text: no such word")
		} else if refused[i] != nil || all[i].Dense[0] != want {
			t.Errorf("input %d: %v, %v", i, all[i].Dense, refused[i])
		}
	}
	if x, err := vector(t.Context(), e, "asked"); err != nil || x.Dense[0] != 5 {
		t.Errorf("asked %v times, %v", x.Dense, err)
	}
	for _, inputs := range [][]string{{"refuse", "too short"}, {"refuse", "leave"}} {
		_, _, err = e.Each(t.Context(), dim, inputs)
		if of, is := errors.AsType[*Error](err); !is || of.Reason != Failed {
			t.Errorf("%q: %v", inputs, err)
		}
	}
	all, refused, err = e.Each(t.Context(), dim, nil)
	if err != nil || len(all)+len(refused) > 0 {
		t.Errorf("of no inputs: %v, %v, %v", all, refused, err)
	}
}

// A program that is started for its inputs alone need not flush its output. If it prints more lines
// than it got inputs, Run returns an error.
func TestRun(t *testing.T) {
	texts := []string{"a", "bbb", "cc", strings.Repeat("d", 1<<15)}
	for _, mode := range []string{"at the end", "lines"} {
		p := testEncoder(t, mode, 0).Program
		for _, n := range []int{1, len(texts), 0} {
			all, err := Run(t.Context(), p, dim, texts[:n])
			check(t, err)
			for i, x := range all {
				if len(all) != n || int(x.Dense[0]) != len(texts[i]) {
					t.Errorf("%s: text %d of %d: %v", mode, i, len(all), x.Dense)
				}
			}
		}
	}
	p := testEncoder(t, "at the end", 0).Program
	for _, texts := range [][]string{{"twice"}, {"a", "twice"}, {"twice", "a"}} {
		_, err := Run(t.Context(), p, dim, texts)
		fails(t, err, Failed, "it printed more than a line for an input")
	}
	p = testEncoder(t, "lines", 0).Program
	for text, want := range map[string]string{"leave": "it hurts", "flood": "more than 32 MiB",
		"endless": "more than a line", "nan": "nan"} {
		_, err := Run(t.Context(), p, dim, []string{"a", text})
		fails(t, err, Failed, want)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := Run(ctx, p, dim, []string{"be silent", "hang"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("at the end of its context: %v", err)
	}
}

// A failing program is reported with its own words, and started again for the next
// text.
func TestEncoderFails(t *testing.T) {
	e := testEncoder(t, "lines", 0)
	for text, want := range map[string]struct {
		reason Reason
		text   string
	}{
		"refuse":         {Refused, "the encoder of text: no such word"},
		"leave":          {Failed, "it ended: exit status 3: it hurts"},
		"leave silently": {Failed, "it ended: without an error"},
		"nothing":        {Failed, "it printed nothing where a vector was expected"},
		"nonsense":       {Failed, `it printed "one", number 0, where a number was expected`},
		"nan":            {Failed, `it printed "nan", number 4, where a number was expected`},
		"json nan":       {Failed, "it printed no vector: invalid character 'N'"},
		"too short":      {Failed, "it printed a vector of 2 numbers, the modality has 5 dimensions"},
		"beyond":         {Failed, "it printed a number of dimension 5, the modality has 5 dimensions"},
		"flood":          {Failed, "it printed more than 32 MiB for an input"},
		"endless":        {Failed, "it printed more than a line for an input"},
	} {
		_, err := vector(t.Context(), e, text)
		fails(t, err, want.reason, want.text)
		if x, err := vector(t.Context(), e, "next "+text); err != nil ||
			int(x.Dense[0]) != len("next "+text) {
			t.Errorf("after %s: %v, %v", text, x.Dense, err)
		}
	}
	// A program that greets is ended: the vector after that does not belong to the next
	// text.
	_, err := vector(t.Context(), e, "greet")
	fails(t, err, Failed, `"Welcome!", number 0, where a number was expected: loading`)
	if x, err := vector(t.Context(), e, "six letters"); err != nil || x.Dense[0] != 11 {
		t.Errorf("after a greeting: %v, %v", x.Dense, err)
	}
	// A program that prints two lines for a text would be a text behind from then on. It is found
	// with its first text, also of many.
	e.making.close()
	e.making = nil
	for _, texts := range [][]string{{"two"}, {"two", "two", "two"}} {
		_, err = e.Encode(t.Context(), dim, texts)
		fails(t, err, Failed, `it printed more than a line for an input, the first "[1,2,3,4,5]\n"`)
	}
	if x, err := vector(t.Context(), e, "another"); err != nil || x.Dense[0] != 7 {
		t.Errorf("after two lines: %v, %v", x.Dense, err)
	}
	_, err = vector(t.Context(), New(Program{Modality: "text", Command: []string{"/nowhere/at/all"}}), "x")
	fails(t, err, Failed, "/nowhere/at/all")
}

// A silent program is given up, and ended with the encoder.
func TestEncoderIsSilent(t *testing.T) {
	e := testEncoder(t, "lines", 300*time.Millisecond)
	_, err := vector(t.Context(), e, "think") // the first text, which starts it, may take minutes
	check(t, err)
	_, err = vector(t.Context(), e, "be silent")
	fails(t, err, Late, "no vector after 300ms (it has to flush its output after each line): thinking")
	left := openEncoder(t, "lines", time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := vector(ctx, left, "be silent"); err != context.Canceled {
		t.Errorf("who has left gets %v", err)
	}
	left.Close()
	if _, err := vector(t.Context(), left, "x"); err != db.ErrClosed {
		t.Errorf("after the end: %v", err)
	}
	slow := openEncoder(t, "lines", time.Hour)
	failed := make(chan error)
	go func() {
		_, err := vector(context.Background(), slow, "be silent")
		failed <- err
	}()
	for len(slow.turn) == 0 { // until it has begun
		runtime.Gosched()
	}
	slow.Close()
	if err := <-failed; err != db.ErrClosed {
		t.Errorf("at the end: %v", err)
	}
}

// A program may take longer to start than for a text.
func TestEncoderStartsSlowly(t *testing.T) {
	e := testEncoder(t, "lines", time.Nanosecond)
	for range 2 { // it is started again after a timeout
		_, err := vector(t.Context(), e, "first")
		check(t, err)
		_, err = vector(t.Context(), e, "be silent")
		fails(t, err, Late, "no vector after 1ns")
	}
	for want, p := range map[time.Duration]Program{
		startTimeout: {Timeout: time.Second}, time.Hour: {Timeout: time.Hour},
	} {
		if got := New(p).Longest(); got != want {
			t.Errorf("%+v: %v instead of %v", p, got, want)
		}
	}
}

// A caller that does not wait for the vector leaves the program in step.
func TestEncoderKeepsStep(t *testing.T) {
	e := testEncoder(t, "lines", 0)
	for i := range 50 {
		ctx, cancel := context.WithCancel(t.Context())
		if i%2 == 0 {
			cancel()
		}
		text := strings.Repeat("x", i+1)
		if x, err := vector(ctx, e, text); err == nil && x.Dense[0] != float32(i+1) {
			t.Fatalf("%q: %v", text, x.Dense)
		}
		cancel()
	}
}

func FuzzParseVector(f *testing.F) {
	for _, s := range []string{"1 2", "[1,2.5]", `{"i":[1],"v":[2]}`, `{"error":"x"}`, "", ",", "[1][2]",
		"[1e99]", "nan", `{"i":[1],"v":[2],"x":1}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		x, err := ParseVector(b)
		if (err == nil) != (x.Dense != nil || x.Sparse != nil) {
			t.Errorf("%q: %+v, %v", b, x, err)
		}
		for _, v := range x.Dense {
			if v-v != 0 {
				t.Errorf("%q: %v", b, x.Dense)
			}
		}
	})
}
