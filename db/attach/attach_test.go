package attach_test

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/attach"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/seed"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model/fit"
)

var rounds = flag.Int("rounds", 6, "`N` rounds of processes that start at once and are killed")

// asProcess is the variable whose presence makes the test binary one of the processes.
const asProcess = "FDDHDB_ATTACH_TEST"

func TestMain(m *testing.M) {
	if os.Getenv(asProcess) != "" {
		if err := process(os.Args[1:]); err != nil {
			fmt.Println("failed:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// process opens the database in a folder and puts items. When a put is acknowledged, it prints the key. It
// pauses between two items, as a shell does.
func process(args []string) error {
	ctx := context.Background()
	dir, name := args[0], args[1]
	n, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	d, err := attach.Open(ctx, dir, attach.Options{DB: &db.Options{MustExist: true}})
	if err != nil {
		return err
	}
	role := "attached"
	if d.Own() != nil {
		role = "owner"
	}
	fmt.Println(role)
	c, err := d.Collection(ctx, "main")
	if err != nil {
		return err
	}
	for i := range n {
		key := fmt.Sprint(name, "/", i)
		if _, err := c.Put(ctx, &db.Item{Key: key, Code: []byte{1, byte(i)}}); err != nil {
			return fmt.Errorf("put %s: %w", key, err)
		}
		fmt.Println("put", key)
		if i%5 == 0 {
			if it, err := c.Get(ctx, key); err != nil || it.Key != key {
				return fmt.Errorf("get %s: %v, %w", key, it, err)
			}
		}
		time.Sleep(time.Duration(rand.IntN(2000)) * time.Microsecond)
	}
	return d.Close()
}

// create makes a database with a collection.
func create(t testing.TB, dir string) {
	t.Helper()
	d, err := db.Open(dir, nil)
	if err == nil {
		_, err = d.CreateCollection(t.Context(), "main", db.Schema{Bits: 16})
		err = errors.Join(err, d.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Two to ten processes start at once on one folder, and some are killed, the owner among them. The others do
// not fail, and what was acknowledged is there.
func TestProcesses(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("kills processes by signals")
	}
	s := seed.From(t, 1)
	rng := rand.New(rand.NewPCG(s, 1))
	dir := filepath.Join(t.TempDir(), "a.db")
	create(t, dir)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	roles := map[string]int{}
	for round := range *rounds {
		var mu sync.Mutex
		var wg sync.WaitGroup
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		for p := range 2 + rng.IntN(9) {
			name := fmt.Sprint("r", round, "p", p)
			killAt := -1
			if rng.IntN(3) == 0 {
				killAt = rng.IntN(15)
			}
			wg.Go(func() {
				cmd := exec.CommandContext(ctx, self, dir, name, "20")
				cmd.Env = append(os.Environ(), asProcess+"=1")
				out, err := cmd.StdoutPipe()
				if err == nil {
					err = cmd.Start()
				}
				if err != nil {
					t.Error(err)
					return
				}
				var said []string
				for scan := bufio.NewScanner(out); scan.Scan(); {
					line := scan.Text()
					said = append(said, line)
					mu.Lock()
					if key, is := strings.CutPrefix(line, "put "); is {
						all[key] = true
					} else {
						roles[line]++
					}
					mu.Unlock()
					if len(said) == killAt {
						_ = cmd.Process.Kill()
					}
				}
				if err := cmd.Wait(); err != nil && killAt < 0 {
					t.Errorf("round %d: %s ended: %v: %s", round, name, err, said[max(0, len(said)-1):])
				}
			})
		}
		wg.Wait()
		cancel()
		if t.Failed() {
			break
		}
	}
	t.Logf("seed %d: %v, %d items", s, roles, len(all))
	d, err := db.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	c, err := d.Collection("main")
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if has, err := dbkit.Has(t.Context(), c, key); !has || err != nil {
			t.Errorf("%s was acknowledged and is not there: %v", key, err)
		}
	}
	if _, err := d.Verify(t.Context(), db.VerifyOptions{}, nil); err != nil {
		t.Error(err)
	}
	if len(all) == 0 || roles["attached"] == 0 {
		t.Errorf("nothing was tried: %v", roles)
	}
}

// A process that opens a database by package db alone serves nobody: another one waits, and then fails. With
// Serve it attaches.
func TestServe(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("a long name ", 12),
		"a.db") // longer than a socket's path
	if err := os.MkdirAll(filepath.Dir(dir), 0o777); err != nil {
		t.Fatal(err)
	}
	create(t, dir)
	d, err := db.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = attach.Open(t.Context(), dir, attach.Options{Wait: 50 * time.Millisecond})
	if !errors.Is(err, db.ErrLocked) {
		t.Errorf("a process that serves nobody: %v", err)
	}
	o, err := attach.Serve(d, dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(filepath.Join(dir, "OWNER"))
	if err != nil || runtime.GOOS != "windows" && (info.Mode().Type() != fs.ModeSocket ||
		info.Mode().Perm() != 0o600) {
		t.Errorf("the socket: %v, %v", info, err)
	}
	a, err := attach.Open(t.Context(), dir, attach.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if a.Own() != nil {
		t.Error("it has attached and owns the database")
	}
	c, err := a.Collection(t.Context(), "main")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Put(t.Context(), &db.Item{Key: "one", Code: []byte{1, 2}}); err != nil {
		t.Error(err)
	}
	// The owner ends: the one that was attached owns the folder now, and says nothing of it.
	if err := errors.Join(o.Close(), d.Close()); err != nil {
		t.Error(err)
	}
	if n, err := c.Count(t.Context(), ""); n != 1 || err != nil {
		t.Errorf("after the owner has ended: %d, %v", n, err)
	}
	b, err := attach.Open(t.Context(), dir, attach.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if names, err := b.Collections(t.Context()); len(names) != 1 || err != nil {
		t.Errorf("through the new owner: %v, %v", names, err)
	}
	if err := errors.Join(b.Close(), a.Close()); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "OWNER")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after all have ended: %v", err)
	}
}

// What stands in the place of the socket and is none, or nobody listens to, does no harm.
func TestOddSockets(t *testing.T) {
	for what, make := range map[string]func(path string) error{
		"text":    func(path string) error { return os.WriteFile(path, []byte("hello"), 0o600) },
		"symlink": func(path string) error { return os.Symlink("/dev/null", path) },
		"folder":  func(path string) error { return os.Mkdir(path, 0o700) },
		"port of nobody": func(path string) error {
			return os.WriteFile(path, []byte(`{"address":"127.0.0.1:1","secret":"x"}`), 0o600)
		},
		"port elsewhere": func(path string) error {
			return os.WriteFile(path, []byte(`{"address":"192.0.2.1:80","secret":"x"}`), 0o600)
		},
	} {
		t.Run(what, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "a.db")
			create(t, dir)
			d, err := db.Open(dir, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := make(filepath.Join(dir, "OWNER")); err != nil {
				t.Fatal(err)
			}
			_, err = attach.Open(t.Context(), dir, attach.Options{Wait: 50 * time.Millisecond})
			if err == nil || !errors.Is(err, db.ErrLocked) && !strings.Contains(err.Error(), "OWNER") {
				t.Errorf("beside a process that serves nobody: %v", err)
			}
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
			a, err := attach.Open(t.Context(), dir, attach.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if a.Own() == nil {
				t.Error("it does not own the folder")
			}
			if err := a.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A training that another process does as the owner goes on when that ends: the one that was attached owns
// the
// folder now, and trains itself.
func TestTrainingOutlivesTheOwner(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a.db")
	owner, err := attach.Open(t.Context(), dir, attach.Options{})
	if err != nil {
		t.Fatal(err)
	}
	made := dbkit.Pairs(400, synth.Config{Classes: 4, Noise: 1, Seed: 1})
	c, err := owner.CreateCollection(t.Context(), "main", dbkit.PairsSchema)
	if err != nil {
		t.Fatal(err)
	}
	b := owner.NewBatch()
	for _, it := range made {
		if err := b.Put(c, it); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	a, err := attach.Open(t.Context(), dir, attach.Options{})
	if err != nil {
		t.Fatal(err)
	}
	of, err := a.Collection(t.Context(), "main")
	if err != nil {
		t.Fatal(err)
	}
	begun, once := make(chan struct{}), sync.Once{}
	closed := make(chan error, 1)
	go func() {
		<-begun
		closed <- owner.Close()
	}()
	tr, err := of.Train(t.Context(), db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 100,
		Progress: func(string, int64, int64) { once.Do(func() { close(begun) }) }}})
	if err != nil || tr.Items != len(made) {
		t.Errorf("%+v, %v", tr, err)
	}
	if err := <-closed; err != nil {
		t.Errorf("the owner: %v", err)
	}
	if spaces, err := of.Spaces(t.Context()); err != nil || len(spaces) != 1 {
		t.Errorf("%d spaces, %v", len(spaces), err)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
}
