package command

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/clitest"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/forms"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/run"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
)

// startExplore runs the verb until stop is called, which returns its exit code and its
// output to stderr.
func startExplore(t *testing.T, args ...string) (page string, stop func() (int, string)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	var errs bytes.Buffer
	ended := make(chan int)
	go func() {
		code := runLine(ctx, args, &run.Env{Printer: term.NewPrinter(w, &errs), Stdin: strings.NewReader("")})
		_ = w.Close()
		ended <- code
	}()
	lines := bufio.NewReader(r)
	line, err := lines.ReadString('\n')
	if err != nil {
		cancel()
		t.Fatalf("exit code %d: %s", <-ended, errs.String())
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	return strings.TrimSpace(line), func() (int, string) {
		cancel()
		return <-ended, errs.String()
	}
}

// The page and the API behind it are served until an interrupt, which is no failure. Without --write nothing
// is changed.
func TestExplore(t *testing.T) {
	f := newFixture(t, 80, true)
	name := strings.TrimSuffix(filepath.Base(f.db), ".db")
	for _, flags := range [][]string{nil, {"--write"}} {
		page, stop := startExplore(t, append([]string{"explore", f.db}, flags...)...)
		collection := page + "v1/" + name + "/collections/main"
		post := func(at, body string) (int, []byte) {
			resp := clitest.Must(http.Post(at, "application/json", strings.NewReader(body)))(t)
			defer resp.Body.Close()
			return resp.StatusCode, clitest.Must(io.ReadAll(resp.Body))(t)
		}
		_, body := post(collection+":radius", `{"key": "7", "from": "image", "to": "text", "k": 3, "radius": 9}`)
		var got, want forms.Search
		clitest.Check(t, json.Unmarshal(body, &got))
		got.Query = "7"
		mustJSON(t, &want, "search", f.db, "--key", "7", "--from", "image", "--to", "text", "-k", "3",
			"--radius", "9") // through explore, which owns the folder
		if diff := cmp.Diff(want, got); diff != "" || len(want.Hits) == 0 {
			t.Error(diff)
		}
		wanted := http.StatusForbidden
		if flags != nil {
			wanted = http.StatusOK
		}
		if code, body := post(collection+"/items", `{"labels": ["cat"]}`); code != wanted {
			t.Errorf("%q: a put is answered with %d %s, want %d", flags, code, body, wanted)
		}
		http.DefaultClient.CloseIdleConnections()
		if code, errs := stop(); code != exit.Done || errs != "Ctrl-C ends it.\n" {
			t.Errorf("exit code %d, %q", code, errs)
		}
	}

	for _, args := range [][]string{
		{"explore", f.db, "--json", "--address", "localhost:0"},
		{f.db, "-c", "explore --json"}, // the database of a shell
	} {
		line, stop := startExplore(t, args...)
		var at struct{ URL string }
		if err := json.Unmarshal([]byte(line), &at); err != nil || !strings.HasPrefix(at.URL, "http://") {
			t.Errorf("%q: %s: %v", args, line, err)
		}
		resp := clitest.Must(http.Get(at.URL))(t)
		_ = resp.Body.Close()
		http.DefaultClient.CloseIdleConnections()
		if code, errs := stop(); code != exit.Done {
			t.Errorf("%q: exit code %d, %s", args, code, errs)
		}
	}
}

// Pictures are taken for an encoder of files that the collection has, where its user has trusted it: in a
// copy it is named in a warning, and there is none.
func TestExploreTrusts(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	f := newFixture(t, 10, false)
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"clip":"[1,2,3,4,5,6,7,8]"}`)
	}))
	defer service.Close()
	if code, _, errs := do(t, "encoder", f.db, "--input", "file", "--set",
		"image="+service.URL+"/predict clip"); code != exit.Done {
		t.Fatal(errs)
	}
	copied := filepath.Join(t.TempDir(), "copied.db")
	clitest.Check(t, os.CopyFS(copied, os.DirFS(f.db)))
	for _, dir := range []string{f.db, copied} {
		page, stop := startExplore(t, "explore", dir)
		name := strings.TrimSuffix(filepath.Base(dir), ".db")
		resp := clitest.Must(http.Get(page + "v1/" + name + "/collections/main"))(t)
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || strings.Contains(string(body), `"files":["image"]`) != (dir == f.db) {
			t.Errorf("%s: %s, %v", dir, body, err)
		}
		http.DefaultClient.CloseIdleConnections()
		if _, errs := stop(); strings.Contains(errs, "--input file --trust image") != (dir == copied) {
			t.Errorf("%s: %q", dir, errs)
		}
	}
}

// A request that waits for a program ends with explore, which ends well.
func TestExploreEndsWhileEncoding(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the program is a script of a shell")
	}
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	f := newFixture(t, 10, false)
	script, started := f.path("encode.sh"), f.path("started")
	clitest.WriteFile(t, script, "exec sed s/.*/1,2,3,4,5/\n")
	if code, _, errs := do(t, "encoder", f.db, "--set", "text=sh "+script); code != exit.Done {
		t.Fatal(errs)
	}
	clitest.WriteFile(t, script, "echo >"+started+"\nexec sleep 3600\n")
	page, stop := startExplore(t, "explore", f.db)
	name := strings.TrimSuffix(filepath.Base(f.db), ".db")
	answered := make(chan string)
	go func() {
		resp, err := http.Post(page+"v1/"+name+"/collections/main:search", "application/json",
			strings.NewReader(`{"text": "a cat"}`))
		if err != nil {
			answered <- err.Error()
			return
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		answered <- fmt.Sprint(resp.StatusCode, string(body), err)
	}()
	for _, err := os.Stat(started); err != nil; _, err = os.Stat(started) {
		time.Sleep(time.Millisecond)
	}
	if code, errs := stop(); code != exit.Done {
		t.Errorf("exit code %d, %s", code, errs)
	}
	if got := <-answered; !strings.Contains(got, `"code":"closing"`) {
		t.Errorf("the request is answered by %s", got)
	}
}

// A page searches by the words of an encoder behind an address, and says what has happened when its model is
// another one.
func TestExploreService(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	f := newFixture(t, 10, false)
	var changed atomic.Bool
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Input []string }
		_ = json.NewDecoder(r.Body).Decode(&in)
		data := []any{}
		for _, text := range in.Input {
			x := []int{len(text), 1, 0, 0, 0}
			if changed.Load() {
				slices.Reverse(x)
			}
			data = append(data, map[string]any{"embedding": x})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": data})
	}))
	defer service.Close()
	if code, _, errs := do(t, "encoder", f.db, "--set", "text="+service.URL+"/v1/embeddings words"); code !=
		exit.Done {
		t.Fatal(errs)
	}
	for _, want := range []string{`200 {"hits":\[{"key":`, `502 {.*"detail":"fddhdb: encoder has failed: ` +
		`the encoder of text, 127.0.0.1:\d+: .*/v1/embeddings words.* is not the encoder that was stored`} {
		page, stop := startExplore(t, "explore", f.db)
		name := strings.TrimSuffix(filepath.Base(f.db), ".db")
		resp := clitest.Must(http.Post(page+"v1/"+name+"/collections/main:search", "application/json",
			strings.NewReader(`{"text": "a cat"}`)))(t)
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if got := fmt.Sprint(resp.StatusCode, " ", string(body)); err != nil ||
			!regexp.MustCompile(want).MatchString(got) {
			t.Errorf("%s, %v, want %s", got, err, want)
		}
		http.DefaultClient.CloseIdleConnections()
		stop()
		changed.Store(true)
	}
}
