//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/fddhdb/fddhdb/files/npy"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// Stocks are the databases and files that attempts copy and work on.
type stocks struct {
	f     *field
	dir   string // folder of the databases, one folder each, and of repo
	in    string // folder of inputs
	looks map[string]state

	mu        sync.Mutex
	baselines map[string]*baseline
}

// stockNames are the names of the databases.
//
//   - main has records of every kind: a learned collection with fields, payloads, three
//     modalities, two spaces, revisions, and deleted items that have taught; and a
//     collection of given codes.
//   - anchors was trained with 800 anchors, whose statistics are values of a megabyte and more.
//   - killed is main after its process was killed with writes in the log.
var stockNames = []string{"main", "anchors", "killed"}

// The numbers of items in the inputs.
const (
	mainItems   = 300
	moreItems   = 60
	anchorItems = 3000
	codeItems   = 500
	manyCodes   = 120_000
)

// newStocks makes the inputs, and with the command itself the databases.
func newStocks(ctx context.Context, f *field) (*stocks, error) {
	s := &stocks{f: f, dir: filepath.Join(f.root, "stock"), in: filepath.Join(f.root, "in"),
		looks: map[string]state{}, baselines: map[string]*baseline{}}
	for _, dir := range []string{s.dir, s.in} {
		if err := os.MkdirAll(dir, 0o777); err != nil {
			return nil, err
		}
	}
	if err := s.inputs(); err != nil {
		return nil, err
	}
	if err := os.Symlink(s.in, filepath.Join(s.dir, "in")); err != nil {
		return nil, err
	}
	if err := s.databases(ctx); err != nil {
		return nil, err
	}
	for _, name := range stockNames {
		look, err := s.look(ctx, s.dir, name, name)
		if err != nil {
			return nil, err
		}
		s.looks[name] = look
	}
	return s, nil
}

// of returns the same databases for another run f, with baselines of its own.
func (s *stocks) of(f *field) *stocks {
	return &stocks{f: f, dir: s.dir, in: s.in, looks: s.looks, baselines: map[string]*baseline{}}
}

// inputs makes the input files of the verbs.
func (s *stocks) inputs() error {
	in := func(name string) string { return filepath.Join(s.in, name) }
	data := synth.Pairs(synth.Config{Items: mainItems + moreItems, Classes: 10, Dims: []int{8, 5},
		Seed: s.f.seed})
	more := data.Slice(mainItems, mainItems+moreItems)
	w, err := os.Create(in("items.jsonl"))
	if err != nil {
		return err
	}
	enc := json.NewEncoder(w)
	for i := range mainItems {
		v := data.Item(i)
		tags := map[string]any{"i": []int{i % 40}, "v": []float32{1}}
		item := map[string]any{
			"key": number(int64(i)), "labels": []string{fmt.Sprint(data.Labels[i][0])},
			"vectors": map[string]any{"image": v[0], "text": v[1], "tags": tags},
			"fields": map[string]any{"year": 2000 + i%20, "title": fmt.Sprint("title ", i),
				"price": float64(i) / 4, "sold": i%2 == 0},
		}
		switch {
		case i == mainItems-1: // with a picture
			item["key"] = "large"
			item["payload"] = slices.Repeat([]byte{byte(i), 7, byte(i * i)}, 100_000)
		case i%3 == 0:
			item["payload"] = []byte(fmt.Sprint("payload ", i))
		}
		if i%10 == 9 {
			delete(item, "labels")
		}
		if err := enc.Encode(item); err != nil {
			return err
		}
	}
	err = w.Close()
	lines := func(name string, n int, f func(i int) string) {
		var b strings.Builder
		for i := range n {
			fmt.Fprintln(&b, f(i))
		}
		err = errors.Join(err, os.WriteFile(in(name), []byte(b.String()), 0o666))
	}
	lines("more_keys.txt", moreItems, func(i int) string { return fmt.Sprint("more", i) })
	lines("some_keys.txt", moreItems, func(i int) string { return fmt.Sprint(i) })
	lines("more_labels.txt", moreItems, func(i int) string { return fmt.Sprint(more.Labels[i][0]) })
	wide := synth.Pairs(synth.Config{Items: anchorItems + 5, Classes: 24, LabelsPerItem: 3,
		Dims: []int{32, 24}, Noise: 2, Seed: s.f.seed})
	lines("wide_labels.txt", anchorItems, func(i int) string {
		return strings.Trim(strings.ReplaceAll(fmt.Sprint(wide.Labels[i]), " ", ","), "[]")
	})
	full := synth.Pairs(synth.Config{Items: fullItems, Classes: 10, Dims: []int{128, 32}, Noise: 2,
		Seed: s.f.seed})
	lines("full_labels.txt", fullItems, func(i int) string { return fmt.Sprint(full.Labels[i][0]) })
	codes := func(n int) [][]uint8 {
		rows := make([][]uint8, n)
		for i := range rows {
			rows[i] = []uint8{uint8(i % 7), uint8(i >> 3), uint8(i >> 11), 3}
		}
		return rows
	}
	// A table of another program.
	table := "id,image,tags,year\n"
	for i := range 200 {
		table += fmt.Sprintf("t%d,\"[%d,1,0,0,0,0,0,1]\",\"['a', 'b%d']\",%d\n", i, i, i%3, 2000+i%9)
	}
	err = errors.Join(err, os.WriteFile(in("table.csv"), []byte(table), 0o644),
		os.Mkdir(in("pictures"), 0o777))
	for i := range 40 {
		m := image.NewGray(image.Rect(0, 0, 64+i, 64))
		for j := range m.Pix {
			m.Pix[j] = uint8(i * j / 50)
		}
		var b bytes.Buffer
		err = errors.Join(err, png.Encode(&b, m),
			os.WriteFile(in(fmt.Sprintf("pictures/%d.png", i)), b.Bytes(), 0o666))
	}
	lines("texts.txt", 200, func(i int) string { return fmt.Sprint("text ", i, " of a few words, ", i*i) })
	return errors.Join(err,
		npy.WriteAll(in("more_image.npy"), more.Vectors[0]),
		npy.WriteAll(in("more_text.npy"), more.Vectors[1]),
		os.WriteFile(in("image.sh"), []byte("#!/bin/sh\nexec sed -u s/.*/1,0,0,1,0,1,0,0/\n"), 0o700),
		os.WriteFile(in("text.sh"), []byte("#!/bin/sh\nexec sed -u s/.*/1,0,0,1,0/\n"), 0o700),
		npy.WriteAll(in("wide_image.npy"), wide.Vectors[0][anchorItems:]),
		npy.WriteAll(in("all_image.npy"), wide.Vectors[0][:anchorItems]),
		npy.WriteAll(in("all_text.npy"), wide.Vectors[1][:anchorItems]),
		npy.WriteAll(in("full_image.npy"), full.Vectors[0]),
		npy.WriteAll(in("full_text.npy"), full.Vectors[1]),
		npy.WriteAll(in("codes.npy"), codes(codeItems)), npy.WriteAll(in("many_codes.npy"), codes(manyCodes)))
}

// databases makes the databases and the backups.
func (s *stocks) databases(ctx context.Context) error {
	killed := make(chan error, 1)
	for _, line := range []string{
		"init main.db --modality image:8 --modality text:5 --modality tags:40:sparse --field year:int:index --field title:string:index --field price:float:index --field sold:bool:index",
		"import main.db --items in/items.jsonl",
		"train main.db --bits 16 --anchors 20" + tagged,
		"put main.db p1 --labels 2 --vector image=0,1,0,1,0,1,0,1",
		"put main.db p2 --vector text=0,1,0,1,0",
		"put main.db 11 --labels 4 --vector image=0,1,0,1,0,1,0,1", // it has taught
		"delete main.db 12 13",
		"update main.db --teacher labels",
		"delete main.db 14 15",
		"put main.db p3 --labels 5 --vector image=0,1,0,1,0,1,1,1",
		"reindex main.db",
		"init main.db --collection codes --codes 32",
		"import main.db --collection codes --codes in/codes.npy",
		"backup main.db repo",
		"put main.db p4 --labels 1",
		"backup main.db repo",
		"backup main.db repo --index-only --collection main",
		"compact main.db",
		"delete main.db 16",
		"put main.db p5 --labels 1 --vector text=0,1,0,1,0",
		"init anchors.db --modality image:32 --modality text:24",
		"import anchors.db --vectors image=in/all_image.npy --vectors text=in/all_text.npy --labels in/wide_labels.txt",
		"train anchors.db --bits 32 --anchors 800" + quickly,
		"compact anchors.db",
	} {
		if err := s.must(ctx, line); err != nil {
			return err
		}
		if !strings.HasPrefix(line, "init anchors.db") {
			continue
		}
		if err := copyTree(s.path("killed"), s.path("main")); err != nil { // main does not change any more
			return err
		}
		go func() { killed <- s.kill(ctx) }()
	}
	return <-killed
}

func (s *stocks) path(name string) string { return filepath.Join(s.dir, name+".db") }

// must runs a command that has to succeed.
func (s *stocks) must(ctx context.Context, line string) error {
	r, err := s.f.do(ctx, s.dir, call{args: strings.Fields(line), within: 5 * time.Minute})
	if err == nil && (r.late || r.code != 0) {
		err = fmt.Errorf("fddhdb %s: %v", line, r)
	}
	return err
}

// kill writes to a database with a shell. It kills the shell when all writes are
// acknowledged and the side file, which lags a second behind, knows of them. From then
// on, damage of the log is told.
func (s *stocks) kill(ctx context.Context) error {
	h, err := s.f.hold(ctx, s.dir, "killed.db")
	if err != nil {
		return err
	}
	defer h.kill()
	for i := range 5 {
		if _, err := h.say(fmt.Sprintf("put killed%d --labels %d --field year=2020", i, i)); err != nil {
			return err
		}
	}
	select {
	case <-time.After(2 * time.Second):
	case <-ctx.Done():
	}
	return nil
}

// A holder is a shell that has a database open.
type holder struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan string
}

// hold opens a shell with flags on a database, and waits until it answers.
func (f *field) hold(ctx context.Context, dir string, args ...string) (*holder, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	out, w, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, read.Close(), write.Close())
	}
	cmd, err := f.startCall(dir, &call{args: args}, w, w, read)
	err = errors.Join(err, read.Close(), w.Close())
	if err != nil {
		return nil, errors.Join(err, write.Close(), out.Close())
	}
	h := &holder{cmd: cmd, in: write, lines: make(chan string)}
	go func() {
		defer close(h.lines)
		defer out.Close()
		for s := bufio.NewScanner(out); s.Scan(); {
			select {
			case h.lines <- s.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	if _, err := h.say("count"); err != nil {
		h.kill()
		return nil, err
	}
	return h, nil
}

// say types a line into the shell, and returns the first line of the answer.
func (h *holder) say(line string) (string, error) {
	if _, err := fmt.Fprintln(h.in, line); err != nil {
		return "", err
	}
	select {
	case answer, ok := <-h.lines:
		if !ok {
			return "", fmt.Errorf("the shell has ended at %q", line)
		}
		if strings.HasPrefix(answer, "fddhdb: ") {
			return "", fmt.Errorf("%s: %s", line, answer)
		}
		return answer, nil
	case <-time.After(30 * time.Second):
		return "", fmt.Errorf("the shell does not answer %q", line)
	}
}

// kill kills the shell at once.
func (h *holder) kill() {
	_ = syscall.Kill(-h.cmd.Process.Pid, syscall.SIGKILL)
	for range h.lines {
	}
	_ = h.cmd.Wait() // it was killed
	_ = h.in.Close()
}
