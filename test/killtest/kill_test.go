package killtest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/internal/seed"
)

var kills = flag.Int("kills", 0, "how many processes to kill; 0: a few")

func TestMain(m *testing.M) {
	if in := os.Getenv(orderVariable); in != "" {
		work(in)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// After a process is killed, everything that was acknowledged is there, nothing else,
// and nothing by halves. Another process goes on with the folder.
func TestKill(t *testing.T) { testKills(t, 20, false) }

// Without syncing, the latest writes may be lost, but none without all writes after it.
func TestKillWithoutSync(t *testing.T) { testKills(t, 4, true) }

func testKills(t *testing.T, few int, noSync bool) {
	n := few
	if testing.Short() {
		if noSync {
			t.Skip("the same, with the race detector in the process that looks")
		}
		n = 3
	}
	if *kills > 0 {
		n = max(3, *kills*few/20)
	}
	ctx := t.Context()
	dir := filepath.Join(t.TempDir(), "db")
	const writers = 3
	b := newBook(writers, noSync)
	first := seed.From(t, 1)
	random := rand.New(rand.NewPCG(first, uint64(few)))
	lost, during := 0, map[string]int{}
	start := time.Now()
	for i := range n {
		in, err := json.Marshal(order{Dir: dir, Seed: random.Uint64(), NoSync: noSync, Writers: writers,
			Next: b.next(), Import: b.imports.number})
		if err != nil {
			t.Fatal(err)
		}
		going, err := killOne(string(in), random, noSync, b.hear)
		if err != nil {
			t.Fatalf("process %d (-seed %d): %v", i, first, err)
		}
		for _, what := range going {
			during[what]++
		}
		b.copies.end(b)
		missing, err := lookAt(ctx, dir, b, random, i%10 == 9)
		if err == nil {
			err = b.copies.look(ctx, dir, random, i%7 == 3)
		}
		if err != nil {
			t.Fatalf("after kill %d (-seed %d), %v was going on: %v", i, first, going, err)
		}
		lost += missing
		if i%50 == 49 {
			t.Logf("%d kills, %d operations acknowledged, %d lost, %d KiB, backups %d KiB, %s",
				i+1, b.acked, lost, size(t, dir)>>10, size(t, repositoryOf(dir))>>10,
				time.Since(start).Round(time.Second))
		}
	}
	if lost > 0 && !noSync {
		t.Errorf("%d acknowledged operations are lost", lost)
	}
	if n > 50 && size(t, dir) > 256<<20 {
		t.Errorf("the folder has grown to %d MiB", size(t, dir)>>20)
	}
	left, err := leftovers(ctx, repositoryOf(dir))
	if err != nil || len(left) > 0 {
		t.Errorf("after a prune, left of killed backups and prunes is %.5q, %v", left, err)
	}
	if n > 50 && size(t, repositoryOf(dir)) > 64<<20 {
		t.Errorf("%d backups take %d MiB", len(b.copies.backups), size(t, repositoryOf(dir))>>20)
	}
	t.Logf("%d kills (%v), %d operations acknowledged, %d of them lost, %d KiB", n, during, b.acked, lost,
		size(t, dir)>>10)
	t.Logf("%d imports committed, altered %d times", b.imports.number-1, b.spaces.altered)
	t.Logf("%d backups completed, %d of them restored, %d checkpoints and restored folders checked, %d KiB",
		b.copies.backedUp, b.copies.restored, b.copies.checked, size(t, repositoryOf(dir))>>10)
}

// killOne starts a process, listens to it and kills it at a random moment. It returns
// the kinds of operations, other than writes, that were going on.
func killOne(in string, random *rand.Rand, noSync bool, hear func(line)) (during []string, err error) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), orderVariable+"="+in)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	// The process is killed after so many lines and a moment, wherever it is by then.
	after, moment := 2+random.IntN(160), time.Duration(random.IntN(4000))*time.Microsecond
	switch random.IntN(8) {
	case 0:
		after = random.IntN(2) // while it opens the database
	case 1:
		after *= 4 // once it has made some backups
	}
	if noSync && after > 2 {
		after *= 6 // which takes six times as many lines
	}
	kill := func() { time.AfterFunc(moment, func() { _ = cmd.Process.Kill() }) }
	if after == 0 {
		kill()
	}
	going, copying, importing := "opening", "", ""
	var gaveUp string
	err = lines(bufio.NewReader(out), func(l line) {
		if after--; after == 0 {
			kill()
		}
		switch {
		case l.Err != "":
			gaveUp = l.Err
		case l.Who == spaces && l.Op != nil:
			going = l.Op.Kind
		case l.Who == spaces:
			going = ""
		case l.Who == archivist && l.Op != nil:
			copying = l.Op.Kind
		case l.Who == archivist:
			copying = ""
		case l.Who == importer && l.Op != nil:
			importing = l.Op.Kind
		case l.Who == importer:
			importing = ""
		}
		if l.Err == "" {
			hear(l)
		}
	})
	_ = cmd.Process.Kill() // it may have ended by itself
	_ = cmd.Wait()         // the error tells that it was killed
	during = slices.DeleteFunc([]string{going, copying, importing}, func(s string) bool { return s == "" })
	switch {
	case gaveUp != "":
		return during, fmt.Errorf("it gave up: %s", gaveUp)
	case stderr.Len() > 0:
		return during, fmt.Errorf("it said %s", stderr.String())
	}
	return during, err
}

// lookAt opens the folder that a process has left and checks it.
func lookAt(ctx context.Context, dir string, b *book, random *rand.Rand, deep bool) (lost int, err error) {
	d, err := db.Open(dir, nil)
	if err != nil {
		return 0, err
	}
	defer func() {
		if cerr := d.Close(); err == nil {
			err = cerr
		}
	}()
	for name, schema := range schemas { // the first process may not have created it yet
		if _, err := d.Collection(name); err != nil {
			if _, err := d.CreateCollection(ctx, name, schema); err != nil {
				return 0, err
			}
		}
	}
	if err := completed(ctx, d); err != nil {
		return 0, err
	}
	if lost, err = b.look(ctx, d); err != nil {
		return lost, err
	}
	var found []string
	_, err = d.Verify(ctx, db.VerifyOptions{Deep: deep}, func(f report.Finding) error {
		found = append(found, f.String())
		return nil
	})
	if err != nil || len(found) > 0 {
		return lost, fmt.Errorf("verify: %v, %.5q", err, found)
	}
	for name := range schemas {
		c, err := d.Collection(name)
		if err == nil {
			err = checkSearches(ctx, c, random)
		}
		if err != nil {
			return lost, fmt.Errorf("collection %q: %w", name, err)
		}
	}
	return lost, nil
}

// completed waits until an interrupted space is built.
func completed(ctx context.Context, d *db.DB) error {
	c, err := d.Collection(features)
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		infos, err := c.Spaces(ctx)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(infos,
			func(s report.SpaceInfo) bool { return s.State == report.SpaceBuilding }) {
			return nil
		}
		time.Sleep(time.Millisecond)
	}
	return ctx.Err()
}

// checkSearches compares searches with linear scans of the codes.
func checkSearches(ctx context.Context, c *db.Collection, random *rand.Rand) error {
	s, err := c.Stats(ctx)
	if err != nil || s.Bits == 0 {
		return err
	}
	q := db.Query{Code: []byte{byte(random.IntN(5)), byte(random.IntN(3))}, K: 10}
	var distances []int
	within := 0
	const radius = 3
	for item, err := range c.Codes(ctx, "") {
		if err != nil {
			return err
		}
		n := 0
		for j, x := range item.Code {
			for diff := x ^ q.Code[j]; diff > 0; diff &= diff - 1 {
				n++
			}
		}
		distances = append(distances, n)
		if n <= radius {
			within++
		}
	}
	slices.Sort(distances)
	for search, count := range map[db.Plan]db.Plan{db.PlanAuto: db.PlanAuto, db.PlanScan: db.PlanDisk} {
		q.Plan = search
		r, err := c.Search(ctx, q)
		if err != nil {
			return err
		}
		var got []int
		for _, h := range r.Hits {
			got = append(got, h.Distance)
		}
		if want := distances[:min(q.K, len(distances))]; !slices.Equal(got, want) {
			return fmt.Errorf("distances %v, not %v", got, want)
		}
		q.Plan = count
		runs, err := c.SearchRadius(ctx, q, radius)
		if err != nil {
			return err
		}
		if n := runs.Total(); runs.Close() != nil || n != within {
			return fmt.Errorf("within %d bits are %d, not %d", radius, n, within)
		}
	}
	return nil
}

// size returns the total bytes of the files in a folder.
func size(t *testing.T, dir string) (bytes int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			bytes += info.Size()
		}
		return err
	})
	if err != nil && !strings.Contains(err.Error(), "no such file") {
		t.Fatal(err)
	}
	return bytes
}
