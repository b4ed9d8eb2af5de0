package browser

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

var (
	axeFile = flag.String("axe", "",
		"axe.min.js of axe-core, which looks for what people with disabilities cannot use")
	shots  = flag.String("shots", "", "folder for screenshots")
	budget = flag.Bool("budget", false,
		"fail where the page is slower than it has to be; for a machine that does nothing else")
)

// program is the path of the shell, and emoji that of the example. Both are built once.
var program, emoji string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if *axeFile == "" {
		fmt.Println("nothing is tested without -axe: make page does it")
		return 0
	}
	dir, err := os.MkdirTemp("", "fddhdb-browser-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program, emoji = filepath.Join(dir, "fddhdb"), filepath.Join(dir, "emoji")
	for _, build := range [][]string{{"-C", "../..", "build", "-ldflags=-s -w", "-o", program,
		"./cmd/fddhdb"}, {"-C", "../../examples/emoji", "build", "-ldflags=-s -w", "-o", emoji, "."}} {
		if out, err := exec.Command("go", build...).CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "go %s: %v\n%s", strings.Join(build, " "), err, out)
			return 1
		}
	}
	return m.Run()
}

// emojiDatabase builds the database of the example once, and returns its folder.
var emojiDatabase = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(filepath.Dir(program), "emoji.db")
	out, err := exec.Command(emoji, "--db", dir, "cat").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, out)
	}
	return dir, err
})

// explore serves the database in dir until the test ends, and returns the address of
// the page.
func explore(t *testing.T, dir string, flags ...string) *url.URL {
	t.Helper()
	cmd := exec.Command(program, append([]string{"explore", dir, "--json"}, flags...)...)
	var told bytes.Buffer
	cmd.Stderr = io.MultiWriter(os.Stderr, &told)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(cmd.Process.Signal(os.Interrupt), cmd.Wait()); err != nil {
			t.Errorf("explore: %v", err)
		}
		if strings.Contains(told.String(), "internal error") {
			t.Errorf("explore tells of an internal error: %s", told.String())
		}
	})
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	var at struct{ URL string }
	if err := json.Unmarshal(line, &at); err != nil {
		t.Fatal(err)
	}
	page, err := url.Parse(at.URL)
	if err != nil {
		t.Fatal(err)
	}
	return page
}

func exploreEmoji(t *testing.T) *url.URL {
	t.Helper()
	dir, err := emojiDatabase()
	if err != nil {
		t.Fatal(err)
	}
	setEncoder(t, dir, "text", "words="+emoji+" --db "+dir+" --encode")
	return explore(t, dir, "--collection", "emoji")
}

// setEncoder stores an encoder of emoji in the database, as NAME=COMMAND, and trusts it.
func setEncoder(t *testing.T, dir, input, encoder string) {
	t.Helper()
	fddhdb(t, "encoder", dir, "--collection", "emoji", "--input", input, "--set", encoder)
}

// fddhdb runs a verb.
func fddhdb(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command(program, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// A tab is a browser of its own, with notes of what it has asked for.
type tab struct {
	*testing.T
	ctx  context.Context
	page *url.URL

	mu       sync.Mutex
	asked    []string // addresses that it has asked for
	bytes    float64  // bytes received, without those of addresses under /v1
	problems []string // what the browser has written to its console
	paths    map[network.RequestID]string
}

// browse starts a browser. Where the environment variable CHROMIUM does not name the
// program, the test is skipped: other programs installed on a machine must not decide
// how a test ends.
func browse(t *testing.T, page *url.URL) *tab {
	t.Helper()
	chromium := os.Getenv("CHROMIUM")
	if chromium == "" {
		t.Skip("needs a browser: make page, or CHROMIUM=/path/to/chromium")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium),
		chromedp.WindowSize(1360, 900),
		chromedp.Flag("force-color-profile", "srgb"), chromedp.Flag("host-resolver-rules",
			"MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	b := &tab{T: t, ctx: ctx, page: page, paths: map[network.RequestID]string{}}
	if err := chromedp.Listen(ctx, b.hear); err != nil {
		t.Fatal(err)
	}
	call(b, network.Enable, network.EnableParams{})
	call(b, network.SetCacheDisabled, network.SetCacheDisabledParams{CacheDisabled: true})
	return b
}

func call[P, R any](b *tab, command cdp.Command[P, R], params P) {
	b.Helper()
	if _, err := chromedp.Call(b.ctx, command, params); err != nil {
		b.Fatal(err)
	}
}

// hear notes the requests and the complaints of the browser.
func (b *tab) hear(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		b.asked = append(b.asked, e.Request.URL)
		b.paths[e.RequestID] = strings.TrimPrefix(e.Request.URL, b.page.Scheme+"://"+b.page.Host)
	case *network.EventLoadingFinished:
		if !strings.HasPrefix(b.paths[e.RequestID], "/v1") {
			b.bytes += float64(e.EncodedDataLength)
		}
	case *runtime.EventExceptionThrown:
		b.problems = append(b.problems, e.ExceptionDetails.Text+" "+e.ExceptionDetails.URL)
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			b.problems = append(b.problems, fmt.Sprint(e.Args))
		}
	}
}

func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.shot("failed")
		b.Fatal(err)
	}
}

// open opens an address of the page.
func (b *tab) open(path string) {
	b.Helper()
	b.do(chromedp.Navigate(b.page.Scheme + "://" + b.page.Host + path))
}

// eval returns the value of an expression; if the value is a promise, what the promise
// yields.
func eval[T any](b *tab, expression string) T {
	b.Helper()
	out, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.shot("failed")
		b.Fatal(err)
	}
	return out
}

// until waits for an expression to be true.
func (b *tab) until(expression string) {
	b.Helper()
	poll := chromedp.Poll[chromedp.Void](expression, chromedp.WithPollingTimeout(2*time.Minute),
		chromedp.WithPollingInterval(20*time.Millisecond))
	err := chromedp.Do(b.ctx, poll)
	for range 100 { // on a busy machine chromedp may not have heard yet that there is another page
		if err == nil || !strings.Contains(err.Error(), "Cannot find context") {
			break
		}
		time.Sleep(20 * time.Millisecond)
		err = chromedp.Do(b.ctx, poll)
	}
	if err != nil {
		b.shot("failed")
		b.Fatal(err)
	}
}

// keys returns the keys of the cards, in their order.
func (b *tab) keys() []string {
	b.Helper()
	return eval[[]string](b, `[...document.querySelectorAll(".card")].map((c) => c.dataset.key)`)
}

func (b *tab) shot(name string) {
	if *shots == "" {
		return
	}
	png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		b.Errorf("screenshot %s: %v", name, err)
		return
	}
	if err := os.WriteFile(filepath.Join(*shots, name+".png"), png, 0o666); err != nil {
		b.Error(err)
	}
}

// scheme makes the browser prefer light or dark pages, and sets its size in pixels.
func (b *tab) scheme(scheme string, width, height int64) {
	b.Helper()
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
	b.do(chromedp.EmulateViewport(width, height))
}

// quiet fails the test if the browser has complained.
func (b *tab) quiet() {
	b.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.problems {
		b.Errorf("the browser complains: %s", p)
	}
}

// ask asks the API about the only database of a server, and decodes the answer into out.
func ask(t *testing.T, page *url.URL, path string, body map[string]any, out any) {
	t.Helper()
	address := page.Scheme + "://" + page.Host + "/v1"
	var all struct{ Databases []string }
	fetch(t, address, nil, &all)
	fetch(t, address+"/"+all.Databases[0]+path, body, out)
}

// fetch sends a body as JSON, or gets what is at an address.
func fetch(t *testing.T, address string, body map[string]any, out any) {
	t.Helper()
	var resp *http.Response
	var err error
	if body == nil {
		resp, err = http.Get(address)
	} else {
		var b []byte
		if b, err = json.Marshal(body); err == nil {
			resp, err = http.Post(address, "application/json", bytes.NewReader(b))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", address, resp.Status)
	}
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		t.Fatal(err)
	}
}
