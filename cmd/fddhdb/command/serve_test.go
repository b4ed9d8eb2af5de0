package command

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/clitest"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/run"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
)

// startServe runs serve until the test ends, or stop is called, and returns the URL that it prints.
func startServe(t *testing.T, args ...string) (url string, stop func()) {
	t.Helper()
	r, w, err := os.Pipe()
	clitest.Check(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	var stderr bytes.Buffer
	go func() {
		e := &run.Env{Printer: term.NewPrinter(w, &stderr), Stdin: strings.NewReader("")}
		ended <- runLine(ctx, append([]string{"serve", "--json", "--address", "127.0.0.1:0"}, args...), e)
		_ = w.Close()
	}()
	var said struct{ URL string }
	if err := json.NewDecoder(r).Decode(&said); err != nil {
		t.Fatalf("serve %s: %v, exit code %d: %s", strings.Join(args, " "), err, <-ended, &stderr)
	}
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if code := <-ended; code != 0 {
			t.Errorf("serve ended with %d: %s", code, &stderr)
		}
		_ = r.Close()
	}
	t.Cleanup(stop)
	return said.URL, stop
}

// varying is what differs from run to run, and absent what only a process knows that has answered queries.
var (
	varying = regexp.MustCompile(strings.Join([]string{
		`\b[0-9.]+ (s|ms|us|seconds?)\b`, `\d{4}-\d\d-\d\d[ T][0-9:]+(\.\d+Z)?`, `[0-9.]+ [kM]B`, `\d+ records`,
		`"seconds":\{[^}]*\}`,
		`"(seconds|\w*_us|items_per_second|created|\w*_bytes|bytes\w*|began|id|time|database|records|sequence)":[^,}]*`,
	}, "|"))
	absent = regexp.MustCompile(`"query_distances":\{[^}]*\},`)
)

// A verb says the same of a folder that it owns, of one that another process has open, and of a URL: the same
// output, the same errors and the same exit code.
func TestVerbsAnywhere(t *testing.T) {
	var alone, attached, remote []string
	lines := []string{
		"count DIR", "count DIR --where \"label = 'label1'\"", "count DIR --where \"label = \"",
		"search DIR --from image --to text --key 3 -k 4 --json --include labels,vectors --facets label",
		"search DIR --key 3 --from text --radius 3 --json", "search DIR --key 3 --from text --explain",
		"search DIR --from image --vectors IMAGE --row 2",
		"search DIR --from image --vectors IMAGE --json -k 2",
		"search DIR --key nobody", "search DIR --from sound --key 3",
		"search DIR --key 3 --from image --recall 1 -k 3", "get DIR 3", "get DIR 3 --json", "get DIR nobody",
		"scan DIR --limit 5 --json", "scan DIR --where \"label = 'label2'\"", "facets DIR",
		"facets DIR --by nothing",
		"dups DIR --radius 0 --limit 3", "dups DIR --radius 1 --pairs --limit 3 --json",
		"dups DIR --modality image --min-similarity .9 --keep newest", "dups DIR --radius 1 --keep biggest",
		"dups DIR --radius 1 --delete 1",
		"collections DIR --json", "collections DIR", "stats DIR --collection main --json", "models DIR",
		"models DIR --json",
		"eval DIR --vectors image=IMAGE --vectors text=TEXT --labels LABELS --json",
		"encode DIR --from image --vectors IMAGE --out OUT.npy", "export DIR --items -",
		"export DIR --keys -",
		"put DIR new --labels label1,odd --vector image=" + strings.Repeat("1,", 127) + "1",
		"put DIR bad --vector image=1,2", "put DIR bad --field x=1", "get DIR new", "delete DIR new nobody",
		"delete DIR --where \"label = 'label3'\" --json",
		"import DIR --vectors image=IMAGE --vectors text=TEXT --labels LABELS --json",
		"import DIR --vectors image=TEXT", "import DIR --items BAD --on-error skip", "import DIR --items BAD",
		"update DIR --json", "reindex DIR", "activate DIR --space 2", "rollback DIR", "drop DIR --space 2",
		"drop DIR --space 1", "rollback DIR --revision 7", "index DIR --modality image --recall .9",
		"index DIR --modality image --drop",
		"alter DIR --add-field year:int:index", "alter DIR --add-field year:int",
		"alter DIR --rename-label label1=one",
		"init DIR --collection more --codes 16", "init DIR --collection more --codes 16",
		"drop DIR --collection more",
		"count DIR --collection more", "train DIR --bits 16 --anchors 20 --activate --json",
		"export DIR --model OUT.model", "import DIR --model OUT.model", "verify DIR",
		"verify DIR --deep --json",
		"compact DIR", "backup DIR BACKUPS --json",
		"count DIR",
	}
	for place, said := range map[string]*[]string{"alone": &alone, "attached": &attached, "remote": &remote} {
		f := newFixture(t, 60, true)
		bad := f.path("bad.jsonl")
		clitest.WriteFile(t, bad, `{"key":"good","labels":["label1"]}
{"key":"worse","vectors":{"image":[1]}}
{"key":"fine","labels":[]}
`)
		dir := f.db
		if place != "alone" {
			url, _ := startServe(t, f.db)
			if place == "remote" {
				dir = url + "/a"
			}
		}
		words := strings.NewReplacer("DIR", dir, "IMAGE", f.image, "TEXT", f.text, "LABELS", f.labels,
			"BAD", bad,
			"OUT", f.path("out"), "BACKUPS", f.path("backups"))
		for _, line := range lines {
			args := shellWords(t, line)
			for i := range args {
				args[i] = words.Replace(args[i])
			}
			code, stdout, stderr := do(t, args...)
			text := strings.NewReplacer(f.dir, "TEMP", dir, "TEMP/a.db").Replace(stdout + "\n" + stderr)
			*said = append(*said, line+"\n"+strings.Repeat("!",
				code)+varying.ReplaceAllString(absent.ReplaceAllString(text, ""), "..."))
		}
	}
	for i := range alone {
		if attached[i] != alone[i] {
			t.Errorf("alone:\n%.1500s\nattached:\n%.1500s", alone[i], attached[i])
		}
		if remote[i] != alone[i] {
			t.Errorf("alone:\n%.1500s\nremote:\n%.1500s", alone[i], remote[i])
		}
	}
}

// shellWords splits a line at blanks outside of quotes.
func shellWords(t *testing.T, line string) (words []string) {
	t.Helper()
	quoted, word := false, ""
	for _, r := range line + " " {
		switch {
		case r == '"':
			quoted = !quoted
		case r == ' ' && !quoted:
			words, word = append(words, word), ""
		default:
			word += string(r)
		}
	}
	return words
}

// What needs the folder for itself says so beside a process that has it open.
func TestVerbsThatOwn(t *testing.T) {
	f := newFixture(t, 20, false)
	url, stop := startServe(t, f.db)
	says(t, exit.Failed, "database is in use", "repair", f.db)
	says(t, exit.Failed, "needs the folder for itself", "verify", f.db, "--acknowledge")
	says(t, exit.Failed, "database is in use", "count", f.db, "--no-attach")
	says(t, exit.Usage, "is served already", "serve", url+"/a")
	says(t, exit.Failed, "not found: database", "count", url+"/other")
	says(t, exit.Usage, "the name of the database is missing", "count", url)
	stop()
	if got := must(t, "count", f.db); got != "20\n" {
		t.Errorf("after the server has ended: %q", got)
	}
}

// A server that is to change nothing changes nothing, even if another process owns the database.
func TestServeReadOnly(t *testing.T) {
	f := newFixture(t, 5, false)
	startServe(t, f.db)
	url, _ := startServe(t, f.db, "--readonly") // works through the first one
	says(t, exit.Failed, "this needs write", "delete", url+"/a", "0")
	says(t, exit.Failed, "this needs admin", "drop", url+"/a", "--collection", "main")
	if got := must(t, "count", url+"/a"); got != "5\n" {
		t.Errorf("%q", got)
	}
}

// Flags of serve and token that do not go, and files that are wrong.
func TestServeFlags(t *testing.T) {
	f := newFixture(t, 5, false)
	tokens := f.path("tokens")
	says(t, exit.Usage, "--tokens FILE says who may do what", "serve", f.db, "--address", "0.0.0.0:0")
	says(t, exit.Failed, "no such file", "serve", f.db, "--tokens", tokens)
	says(t, exit.Failed, "no such file", "token", tokens, "--list")
	says(t, exit.Usage, "the scope", "token", tokens, "--name", "a", "--scope", "root")
	says(t, exit.Usage, "the name", "token", tokens, "--name", "a b")
	text := strings.TrimSpace(must(t, "token", tokens, "--name", "a"))
	if info, err := os.Stat(tokens); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file of tokens: %v, %v", info, err)
	}
	if b, err := os.ReadFile(tokens); err != nil || strings.Contains(string(b), text) {
		t.Errorf("the file has the token: %s, %v", b, err)
	}
	says(t, exit.Usage, "has a token of this name", "token", tokens, "--name", "a")
	says(t, exit.Usage, "--cert and --cert-key protect", "serve", f.db, "--address", "0.0.0.0:0",
		"--tokens", tokens)
	says(t, exit.Usage, "go together", "serve", f.db, "--cert", "x")
	says(t, exit.Usage, "HOST:PORT is expected", "serve", f.db, "--address", "7070")
	says(t, exit.Usage, "is no database, and has none in it", "serve", t.TempDir())
	url, _ := startServe(t, f.db, "--tokens", tokens)
	says(t, exit.Failed, "a token is expected", "count", url+"/a")
	file := f.path("token")
	clitest.WriteFile(t, file, text+"\n")
	if got := must(t, "count", url+"/a", "--token-file", file); got != "5\n" {
		t.Errorf("with the token: %q", got)
	}
	says(t, exit.Failed, "the token has the scope read, and this needs write", "delete", url+"/a", "0", "--token-file", file)
	must(t, "token", tokens, "--remove", "a")
	if got := must(t, "token", tokens, "--list", "--json"); got != "" {
		t.Errorf("after the removal: %q", got)
	}
}

// serve takes a folder of databases, and other processes work on them by folder and by URL at a time.
func TestServeFolder(t *testing.T) {
	parent := t.TempDir()
	for _, name := range []string{"one.db", "two", "three.fddhdb"} {
		must(t, "init", filepath.Join(parent, name), "--codes", "16")
	}
	clitest.WriteFile(t, filepath.Join(parent, "file"), "no database")
	url, stop := startServe(t, parent)
	for _, name := range []string{"one", "two", "three"} {
		must(t, "put", url+"/"+name, "x", "--code", "0102")
	}
	if got := must(t, "count", filepath.Join(parent, "one.db")); got != "1\n" {
		t.Errorf("by the folder: %q", got)
	}
	begin := time.Now()
	stop()
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("it ended after %v", took)
	}
}

// Health is what readyz says. Serve creates a database that is missing if it is told to.
func TestHealth(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new.db")
	says(t, exit.Usage, "--create", "serve", dir)
	url, stop := startServe(t, "--create", dir)
	if got := must(t, "health", url); !strings.HasSuffix(got, " is ready\n") {
		t.Errorf("%q", got)
	}
	must(t, "health", url+"/new")
	must(t, "init", url+"/new", "--codes", "8")
	if got := must(t, "count", dir); got != "0\n" {
		t.Errorf("the new database has %q", got)
	}
	stop()
	says(t, exit.Failed, "does not answer", "health", url)
	says(t, exit.Usage, "a URL is expected", "health", dir)
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	says(t, exit.Failed, "is not ready: 404 Not Found", "health", other.URL)
}

// With --mcp assistants are served beside the API, and pages of other sites are not.
func TestServeAssistants(t *testing.T) {
	f := newFixture(t, 30, true)
	ask := func(url string, change func(*http.Request)) (int, string) {
		t.Helper()
		r := clitest.Must(http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"count_items","arguments":{}}}`)))(t)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		change(r)
		answer := clitest.Must(http.DefaultClient.Do(r))(t)
		defer answer.Body.Close()
		return answer.StatusCode, string(clitest.Must(io.ReadAll(answer.Body))(t))
	}
	as := func(*http.Request) {}
	url, stop := startServe(t, "--mcp", f.db)
	name := strings.TrimSuffix(filepath.Base(f.db), ".db")
	if status, body := ask(url+"/mcp/"+name, as); status != 200 || !strings.Contains(body, `"count":30`) {
		t.Errorf("%d: %s", status, body)
	}
	for what, change := range map[string]func(*http.Request){
		"another host": func(r *http.Request) { r.Host = "evil.example" },
		"another site": func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") },
	} {
		if status, body := ask(url+"/mcp/"+name, change); status != http.StatusForbidden {
			t.Errorf("%s: %d: %s", what, status, body)
		}
	}
	var answer bytes.Buffer
	e := &run.Env{Printer: term.NewPrinter(&answer, io.Discard), Stdin: strings.NewReader("")}
	code := runLine(t.Context(), []string{"count", url + "/" + name}, e)
	if code != 0 || answer.String() != "30\n" {
		t.Errorf("count beside assistants: %d, %s", code, &answer)
	}
	stop()
	url, _ = startServe(t, f.db)
	if status, body := ask(url+"/mcp/"+name, as); status != http.StatusNotFound {
		t.Errorf("without --mcp: %d: %s", status, body)
	}
}

// A child serves the program that has started it, and no other, and ends with its standard input.
func TestServeChild(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a: b.db") // no name for a URL
	for _, line := range []struct {
		want string
		args []string
	}{
		{"leave --address out", []string{dir, "--address", "127.0.0.1:0"}},
		{"leave --tokens out", []string{dir, "--tokens", "x"}},
		{"serves one database", []string{dir, dir + "2"}},
		{"do not go together", []string{dir, "--create", "--readonly"}},
		{"is served already", []string{"http://127.0.0.1/a"}},
	} {
		says(t, exit.Usage, line.want, append([]string{"serve", "--child"}, line.args...)...)
	}
	says(t, exit.Usage, "not a database", "serve", dir, "--child")
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the folder was made: %v", err)
	}
	in, parent := io.Pipe()
	r, w, err := os.Pipe()
	clitest.Check(t, err)
	defer r.Close()
	ended := make(chan int, 1)
	var stderr bytes.Buffer
	go func() {
		e := &run.Env{Printer: term.NewPrinter(w, &stderr), Stdin: in}
		ended <- runLine(t.Context(), []string{"serve", dir, "--child", "--create"}, e)
		_ = w.Close()
	}()
	var said struct{ URL, Token string }
	if err := json.NewDecoder(r).Decode(&said); err != nil {
		t.Fatalf("%v, exit code %d: %s", err, <-ended, &stderr)
	}
	t.Setenv("FDDHDB_TOKEN", said.Token)
	must(t, "init", said.URL, "--codes", "16")
	must(t, "put", said.URL, "x", "--code", "0102")
	t.Setenv("FDDHDB_TOKEN", said.Token+"x")
	says(t, exit.Failed, "401", "count", said.URL)
	if got := must(t, "count", dir); got != "1\n" {
		t.Errorf("through the socket of the folder: %q", got)
	}
	clitest.Check(t, parent.Close())
	if code := <-ended; code != 0 || stderr.Len() > 0 {
		t.Errorf("the child ends with %d: %s", code, &stderr)
	}
	if got := must(t, "count", dir); got != "1\n" {
		t.Errorf("after the child has ended: %q", got)
	}
}
