package serve_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/db/serve"
	"github.com/fddhdb/fddhdb/internal/effort"
)

// dial opens a connection that the test closes.
func (x *target) dial() *net.TCPConn {
	x.t.Helper()
	conn, err := net.Dial("tcp", x.web.Listener.Addr().String())
	if err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(time.Minute)) // a server that hangs fails the test
	return conn.(*net.TCPConn)
}

// answers reads the answers of a connection to its end. Answers that net/http gives before a request reaches
// the server are text.
func (x *target) answers(conn net.Conn) (all []*http.Response, bodies [][]byte) {
	x.t.Helper()
	in := bufio.NewReader(conn)
	for {
		r, err := http.ReadResponse(in, nil)
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) &&
				!strings.Contains(err.Error(), "reset") {
				x.t.Error(err)
			}
			return all, bodies
		}
		b, _ := io.ReadAll(r.Body)
		_ = r.Body.Close()
		all, bodies = append(all, r), append(bodies, b)
	}
}

// Odd targets of requests find nothing, or are refused.
func TestOddPaths(t *testing.T) {
	x := aim(t, serve.Options{}, nil)
	x.listen()
	for _, path := range []string{"/", "/v1/", "//v1", "/v1//collections", "/v1/../v1/photos", "/v1/./photos",
		"/v1/%2e%2e/v1", "/v1/photos/../photos", "/v1/photos/collections/..", "/v1/photos/collections/%2e%2e",
		"/v1/photos/collections/%2e%2e%2f%2e%2e%2fetc%2fpasswd", "/v1/photos/collections/%00",
		"/v1/photos/collections/%ff", "/v1/photos/collections/main:", "/v1/photos/collections/main::count",
		"/v1/photos/collections/main:count:count", "/v1/photos/collections/:count", "/v1/:write", "/v1:write",
		"/v1/photos/collections/main/:count", "/v1/photos/collections/main/count",
		"/v1/photos/collections/main:nobody", "/v1/photos/collections/main%3Acount", "/v1/photos/jobs/a:count",
		"/v1/photos/marks/a:search", "/v1/photos/marks/%00", "/v1/photos/marks/..", "/v1/photos/marks/%2F",
		"/v1/photos/collections/main/items/", "/v1/photos/collections/main/items/a/b",
		"/v1/photos/collections/main/items/%2e%2e", "/v1/photos/collections/main/items/..",
		"/v1/photos/collections/main/items/%c0%ae", "/v1/photos/collections/main/items/" + strings.Repeat("k", 1<<17),
		"/v1/" + strings.Repeat("a/", 1<<15), "/v1/" + strings.Repeat("%2f", 1<<15),
		"/v1/photos/jobs/" + strings.Repeat("A", 1<<10), "/v1/Photos", "/V1/photos", "/v1/photos/",
		"/v1/photos;x",
		"/openapi.json/", "/healthz/..", "http://elsewhere/v1/nobody", "/v1/%70hotos/collections/nobody",
		"/v1/\xff", "/v1/photos/collections/ma\xc3\xafn"} {
		for _, method := range []string{"GET", "POST"} {
			conn := x.dial()
			_, _ = fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}",
				method, path)
			all, bodies := x.answers(conn)
			if len(all) != 1 {
				t.Fatalf("%s %.100s: %d answers", method, path, len(all))
			}
			x.refused(method+" "+path, all[0].StatusCode, all[0].Header, bodies[0], 400, 404, 405)
		}
	}
	for _, line := range []string{"OPTIONS * HTTP/1.1", "CONNECT x:80 HTTP/1.1", "GET /v1/%zz HTTP/1.1",
		"GET /v1 HTTP/9.9", "GET /v1/a b HTTP/1.1", "G\x00T /v1 HTTP/1.1", "GET", "", "\x16\x03\x01\x02\x00\x01"} {
		conn := x.dial()
		_, _ = fmt.Fprintf(conn, "%s\r\nHost: x\r\nConnection: close\r\n\r\n", line)
		_ = conn.CloseWrite()
		all, _ := x.answers(conn)
		for _, r := range all {
			if r.StatusCode < 400 && !strings.HasPrefix(line, "OPTIONS *") || r.StatusCode == 500 {
				t.Errorf("%q: %s", line, r.Status)
			}
		}
	}
}

// bombs returns n blanks as gzip and as zstd.
func bombs(t *testing.T, n int) map[string][]byte {
	var g, z bytes.Buffer
	gw, _ := gzip.NewWriterLevel(&g, gzip.BestSpeed)
	zw, err := zstd.NewWriter(&z, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	block := bytes.Repeat([]byte(" "), 1<<20)
	for range n >> 20 {
		_, _ = gw.Write(block)
		_, _ = zw.Write(block)
	}
	if err := errors.Join(gw.Close(), zw.Close()); err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{"gzip": g.Bytes(), "zstd": z.Bytes()}
}

// heap returns the bytes that are in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Bodies that grow by decompression, or are too large as they are, are refused, and leave no memory behind.
func TestBombs(t *testing.T) {
	x := aim(t, serve.Options{MaxBody: 1 << 20}, nil)
	before := heap()
	for encoding, bomb := range bombs(t, 4<<20) {
		for _, op := range x.operations() {
			if op.method == "GET" || strings.HasSuffix(op.path, ":import") {
				continue
			}
			w := x.ask(op.method, op.path, string(bomb), "Content-Encoding: "+encoding)
			x.refused(op.path+" "+encoding, w.Code, w.Header(), w.Body.Bytes(), 413)
		}
	}
	// A line of an import has a limit of its own.
	for encoding, bomb := range bombs(t, 65<<20) {
		if encoding == "zstd" || effort.Long() {
			w := x.ask("POST", main+":import", `{"key":"new"}`+"\n"+string(bomb),
				"Content-Encoding: "+encoding)
			x.refused("import "+encoding, w.Code, w.Header(), w.Body.Bytes(), 400)
			w = x.ask("POST", main+":import", string(bomb), "Content-Encoding: "+encoding)
			x.refused("import "+encoding, w.Code, w.Header(), w.Body.Bytes(), 413)
		}
	}
	w := x.ask("POST", main+":search", strings.Repeat(" ", 1<<20+1))
	x.refused("a body of a MiB", w.Code, w.Header(), w.Body.Bytes(), 413)
	if after := heap(); after > before+32<<20 {
		t.Errorf("%d bytes are in use, %d before", after, before)
	}
}

// Frames of zstd that ask for much memory get none.
func TestWindowOfZstd(t *testing.T) {
	x := aim(t, serve.Options{}, nil)
	frame := []byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xa8, 0x01, 0, 0} // a window of 2 GiB
	for _, path := range []string{main + ":count", main + ":import"} {
		w := x.ask("POST", path, string(frame), "Content-Encoding: zstd")
		x.refused("a window of 2 GiB", w.Code, w.Header(), w.Body.Bytes(), 400, 413)
	}
}

// Bodies that end early, or are not as long as they say, change nothing.
func TestBodiesThatLie(t *testing.T) {
	x := aim(t, serve.Options{Timeout: 30 * time.Second}, nil)
	x.listen()
	item := `{"key":"half","labels":["x"]}` + "\n"
	for _, op := range []string{"POST " + main + "/items", "PUT " + main + "/items/half",
		"POST " + main + ":import",
		"POST " + photos + ":write", "POST " + main + ":delete", "POST " + main + ":train",
		"POST " + main + ":import-model"} {
		body := item
		switch {
		case strings.HasSuffix(op, ":write"):
			body = `{"collection":"main","put":` + strings.TrimSpace(item) + "}\n"
		case strings.HasSuffix(op, ":delete"):
			body = `{"where":""}`
		case strings.HasSuffix(op, ":train"):
			body = `{}`
		}
		for what, request := range map[string]string{
			"too short": fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body)+100, body),
			"cut":       fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body[:len(body)/2]),
			"chunks without an end": fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", len(body),
				body),
			"half a chunk":          fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s", len(body)+100, body),
			"bad chunks":            "Transfer-Encoding: chunked\r\n\r\nzz\r\n" + body,
			"two lengths":           fmt.Sprintf("Content-Length: 1\r\nContent-Length: %d\r\n\r\n%s", len(body), body),
			"a length that is none": "Content-Length: -1\r\n\r\n" + body,
			"more than is possible": "Content-Length: 9223372036854775807\r\n\r\n" + body,
			"length and chunks": fmt.Sprintf("Content-Length: %d\r\nTransfer-Encoding: gzip\r\n\r\n%s", len(body),
				body),
		} {
			conn := x.dial()
			_, _ = fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: x\r\n%s", op, request)
			_ = conn.CloseWrite() // half-closed: the client still reads
			all, _ := x.answers(conn)
			for i, r := range all {
				if i == 0 && r.StatusCode < 400 || r.StatusCode == 500 {
					t.Errorf("%s, %s: %s", op, what, r.Status)
				}
			}
		}
	}
	if w := x.ask("GET", main+"/items/half", ""); w.Code != 404 {
		t.Errorf("half an item is stored: %s", w.Body)
	}
}

// Clients that stall while they send or read keep nobody else from working, and are cut off.
func TestSlowClients(t *testing.T) {
	x := aim(t, serve.Options{Requests: 1, Timeout: 100 * time.Millisecond}, nil)
	x.listen()
	c, err := x.d.Collection(t.Context(), "main")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 16 {
		it := &db.Item{Key: fmt.Sprint("large", i), Payload: make([]byte, 1<<20)}
		if _, err := c.Put(t.Context(), it); err != nil {
			t.Fatal(err)
		}
	}
	x.items += 16
	var conns []*net.TCPConn
	for i := range 12 {
		conn := x.dial()
		conns = append(conns, conn)
		path := []string{main + ":count", photos + ":write", main + ":import", main + ":train"}[i%4]
		_, _ = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{", path)
	}
	for i := range 4 {
		conn := x.dial()
		_ = conn.SetReadBuffer(4096)
		path := []string{main + ":export", main + ":search"}[i%2]
		body := `{"key":"large0","from":"image","k":40,"include":["payload"]}`
		if i%2 == 0 {
			_, _ = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path)
		} else {
			body = `{"code":"0000","k":40,"include":["payload"]}`
			_, _ = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body)
		}
	}
	for range 20 { // the one place is free
		r, err := http.Post(x.web.URL+main+":count", "", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Body.Close()
		if r.StatusCode != 200 {
			t.Error(r.Status)
		}
	}
	for _, conn := range conns {
		all, bodies := x.answers(conn)
		if len(all) != 1 {
			t.Fatalf("%d answers", len(all))
		}
		x.refused("a stalled body", all[0].StatusCode, all[0].Header, bodies[0], 408)
	}
	// The server cuts off who does not read: Shutdown, at the end of the test, waits for nobody.
	http.DefaultClient.CloseIdleConnections()
}

// The bodies that all requests hold together are bounded.
func TestBodiesTogether(t *testing.T) {
	x := aim(t, serve.Options{MaxBody: 1 << 10}, nil)
	x.listen()
	var conns []*net.TCPConn
	for range 16 {
		conn := x.dial()
		_, _ = fmt.Fprintf(conn, "POST %s:count HTTP/1.1\r\nHost: x\r\nContent-Length: 1024\r\n\r\n{%s", main,
			strings.Repeat(" ", 1000))
		conns = append(conns, conn)
	}
	until := func(status int) {
		for {
			w := x.ask("POST", main+":count", "{"+strings.Repeat(" ", 1000)+"}")
			if w.Code == status {
				return
			}
			if w.Code != 200 {
				x.refused("a body too many", w.Code, w.Header(), w.Body.Bytes(), 429)
			}
		}
	}
	until(429) // the bodies arrive as they like
	for _, conn := range conns {
		_ = conn.Close()
	}
	until(200)
}

// A gate is a database whose collections count when it is opened, and train until they are cancelled.
type gate struct {
	api.Database
	open    chan struct{}
	trained chan error    // a training has ended
	batches chan struct{} // a batch has begun
}

type gated struct {
	api.Collection
	g *gate
}

func (g *gate) Collection(ctx context.Context, name string) (api.Collection, error) {
	c, err := g.Database.Collection(ctx, name)
	if err != nil {
		return nil, err
	}
	return gated{c, g}, nil
}

func (g *gate) NewBatch() api.Batch {
	g.batches <- struct{}{}
	return g.Database.NewBatch()
}

func (c gated) Count(ctx context.Context, where string, args ...any) (int, error) {
	select {
	case <-c.g.open:
		return c.Collection.Count(ctx, where, args...)
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

func (c gated) Train(ctx context.Context, opt db.TrainOptions) (*report.Training, error) {
	opt.Progress("wait", 1, 2)
	<-ctx.Done()
	c.g.trained <- context.Cause(ctx)
	return nil, ctx.Err()
}

func newGate() *gate {
	return &gate{open: make(chan struct{}), trained: make(chan error, 100),
		batches: make(chan struct{}, 100)}
}

// Of thousands of requests at once, as many are answered as may work and wait; the others are refused at
// once, and have done nothing.
func TestThousandsOfRequests(t *testing.T) {
	g := newGate()
	x := aim(t, serve.Options{Requests: 2}, func(d api.Database) api.Database {
		g.Database = d
		return g
	})
	const most = 2 + 2*16
	n := effort.Of(20_000, 2000)
	codes := map[int]int{}
	var mu sync.Mutex
	var refused, all sync.WaitGroup
	refused.Add(n - most)
	for range n {
		all.Go(func() {
			w := x.ask("POST", main+":count", "{}")
			mu.Lock()
			codes[w.Code]++
			mu.Unlock()
			if w.Code != 200 {
				x.refused("count", w.Code, w.Header(), w.Body.Bytes(), 429)
				if w.Header().Get("Retry-After") == "" {
					t.Error("no Retry-After")
				}
				refused.Done()
			}
		})
	}
	refused.Wait()
	for _, path := range []string{"/healthz", "/v1/photos/jobs/none/events"} { // they need no place
		if w := x.ask("GET", path, ""); w.Code != 204 && w.Code != 404 {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	close(g.open)
	all.Wait()
	if codes[200] != most || codes[429] != n-most {
		t.Errorf("%v, not %d", codes, most)
	}
}

// Streams have a limit of their own.
func TestManyStreams(t *testing.T) {
	g := newGate()
	x := aim(t, serve.Options{Requests: 1, Timeout: time.Minute}, func(d api.Database) api.Database {
		g.Database = d
		return g
	})
	close(g.open)
	x.listen()
	var conns []*net.TCPConn
	for range 8 {
		conn := x.dial()
		_, _ = fmt.Fprintf(conn, "POST %s:import HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", main)
		conns = append(conns, conn)
		<-g.batches
	}
	for _, path := range []string{"/keys", ":export"} {
		w := x.ask("GET", main+path, "")
		x.refused("a stream too many", w.Code, w.Header(), w.Body.Bytes(), 429)
	}
	for _, conn := range conns {
		_, _ = fmt.Fprint(conn, "0\r\n\r\n")
		_ = conn.CloseWrite()
		if all, _ := x.answers(conn); len(all) != 1 || all[0].StatusCode != 200 {
			t.Errorf("%v", all)
		}
	}
	if w := x.ask("GET", main+"/keys", ""); w.Code != 200 {
		t.Errorf("a stream after these: %d %s", w.Code, w.Body)
	}
}

// Jobs end when they are cancelled, when the client that follows its job goes away, and when the server does.
func TestJobsThatAreLeft(t *testing.T) {
	g := newGate()
	x := aim(t, serve.Options{}, func(d api.Database) api.Database {
		g.Database = d
		return g
	})
	close(g.open)
	x.listen()
	// A client goes away after the first event.
	for range 5 {
		conn := x.dial()
		_, _ = fmt.Fprintf(conn, "POST %s:train HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\nContent-Length: 0\r\n\r\n",
			main)
		in := bufio.NewReader(conn)
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(line, "event: progress") {
				break
			}
		}
		_ = conn.Close()
		<-g.trained
	}
	for strings.Contains(x.ask("GET", photos+"/jobs", "").Body.String(), `"running"`) {
		runtime.Gosched() // a job ends a moment after its work
	}
	// Others are cancelled. As many run as there may be.
	var places []string
	for {
		w := x.ask("POST", main+":train", "{}")
		if w.Code != 202 {
			x.refused("a job too many", w.Code, w.Header(), w.Body.Bytes(), 429)
			break
		}
		places = append(places, w.Header().Get("Location"))
	}
	if len(places) != 32 {
		t.Errorf("%d jobs run", len(places))
	}
	var followers sync.WaitGroup
	for _, place := range places[:20] {
		followers.Go(func() {
			w := x.ask("GET", place+"/events", "")
			if !strings.Contains(w.Body.String(), `"state":"cancelled"`) {
				t.Errorf("a cancelled job: %s", w.Body)
			}
		})
		if w := x.ask("DELETE", place, ""); w.Code != 200 {
			t.Errorf("DELETE: %d %s", w.Code, w.Body)
		}
		<-g.trained
	}
	followers.Wait()
	x.unharmed() // ends the server
	for range places[20:] {
		<-g.trained
	}
	w := x.ask("GET", main, "")
	x.refused("a request after Shutdown", w.Code, w.Header(), w.Body.Bytes(), 503)
	x.ended = true
}

// A .npy that is not what it says stores nothing, and takes no memory for what it claims.
func TestArraysThatLie(t *testing.T) {
	x := aim(t, serve.Options{}, nil)
	before := heap()
	array := func(descr, shape string, data int) string {
		h := fmt.Sprintf("{'descr': %s, 'fortran_order': False, 'shape': %s, }", descr, shape)
		b := binary.LittleEndian.AppendUint16([]byte("\x93NUMPY\x01\x00"), uint16(len(h)))
		return string(b) + h + strings.Repeat("\x00", data)
	}
	for _, body := range []string{"", "x", "\x93NUMPY", "\x93NUMPY\x01\x00\xff\xff", "\x93NUMPY\x02\x00\xff\xff\xff\xff",
		"\x93NUMPY\x09\x00\x00\x00", array("'<f4'", "(1, 4)", 15), array("'<f4'", "(1, 4)", 17),
		array("'<f4'", "(1000000, 4)", 16), array("'<f4'", "(1, 1000000000)", 16),
		array("'<f4'", "(9223372036854775807, 9223372036854775807)", 16), array("'<f4'", "(-1, 4)", 16),
		array("'<f4'", "(1, 3)", 12), array("'<f4'", "()", 4), array("'<f4'", "(4)", 16),
		array("'<f4'", "(1, 2, 2)", 16),
		array("'|O'", "(1, 4)", 16), array("'<c8'", "(1, 4)", 32), array("'<U4'", "(1, 4)", 64),
		array("'<f4", "(1, 4)", 16), array("__import__('os')", "(1, 4)", 16), array("'<f4'", "(1, 0)", 0),
		array("'<f4'", "(0, 0)", 0), array("[('a', '<f4')]", "(1, 4)", 16),
		strings.Replace(array("'<f4'", "(1, 4)", 16), "False", "True", 1),
		array("'<f4'", "(1, 4)", 0) + "\x00\x00\xc0\x7f" + strings.Repeat("\x00", 12)} {
		for _, query := range []string{"?vectors=image", "?vectors=text", "?vectors=nobody", "?vectors=", "",
			"?codes=true", "?vectors=image&codes=true", "?vectors=image&number_from=9223372036854775807"} {
			w := x.ask("POST", main+":import"+query, body, "Content-Type: application/x-npy")
			if w.Code == 200 { // rows that are fine, or none
				if !strings.HasPrefix(w.Body.String(), `{"items":0}`) {
					t.Errorf("%s %.60q: %s", query, body, w.Body)
				}
				continue
			}
			x.refused(query+" "+body, w.Code, w.Header(), w.Body.Bytes(), 400)
		}
	}
	good := array("'<f4'", "(1, 4)", 0) + strings.Repeat("\x00\x00\x80\x3f", 4)
	for _, h := range []string{"Content-Encoding: gzip", "Content-Encoding: zstd"} {
		w := x.ask("POST", main+":import?vectors=image", good, "Content-Type: application/x-npy", h)
		x.refused(h, w.Code, w.Header(), w.Body.Bytes(), 400, 411)
	}
	req := httptest.NewRequest("POST", main+":import?vectors=image", io.MultiReader(strings.NewReader(good)))
	req.Header.Set("Content-Type", "application/x-npy")
	w := httptest.NewRecorder()
	x.server.ServeHTTP(w, req)
	x.refused("a .npy without a length", w.Code, w.Header(), w.Body.Bytes(), 411)
	w = x.ask("POST", main+":import?vectors=image", `{"key":"a"}`)
	x.refused("lines with parameters of an array", w.Code, w.Header(), w.Body.Bytes(), 400)
	w = x.ask("POST", main+":import?codes=true", array("'<f4'", "(1, 2)", 0)+"\x00\x00\x80\x43\x00\x00\x80\xbf",
		"Content-Type: application/x-npy")
	x.refused("codes of 256 and -1", w.Code, w.Header(), w.Body.Bytes(), 400)
	if after := heap(); after > before+32<<20 {
		t.Errorf("%d bytes are in use, %d before", after, before)
	}
}

// An import that fails in the middle says how much it has stored, and keeps nothing of the part that failed.
func TestImportsThatFail(t *testing.T) {
	x := aim(t, serve.Options{}, nil)
	w := x.ask("POST", main+":import", `{"key":"new"}`+"\n"+`{"key":"bad","fields":{"nobody":1}}`+"\n")
	x.refused("an import", w.Code, w.Header(), w.Body.Bytes(), 400)
	w = x.ask("POST", main+":import?on_error=sometimes", `{"key":"new"}`)
	x.refused("on_error", w.Code, w.Header(), w.Body.Bytes(), 400)
	w = x.ask("POST", main+":import?on_error=skip", "{\n[]\n{\"key\":\"\"}\n{\"nobody\":1}\nnull\n\"x\"\n")
	if w.Code != 200 || !strings.Contains(w.Body.String(), `"items":0,"skipped":6`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
