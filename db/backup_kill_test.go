package db_test

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/backup"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/seed"
	"github.com/fddhdb/fddhdb/internal/synth"
)

var backupKills = flag.Int("backup.kills", 0, "how many processes to kill while they back up and prune")

const keptAfterKills = 2

// A process that backs up and prunes is killed again and again: every backup that it has
// reported is there, or two newer ones are; what is there is sound, and the newest has
// everything that was written before it.
func TestKilledBackupsAndPrunes(t *testing.T) {
	t.Parallel()
	kills := 5
	if testing.Short() {
		kills = 2
	}
	if *backupKills > 0 {
		kills = *backupKills
	}
	root := t.TempDir()
	repository := filepath.Join(root, "backups")
	repo := need(backup.Folder(repository))(t)
	r := seed.Rand(t, uint64(kills), 1)
	items := map[string]int{} // by id, of the backups that were reported
	var newest string
	for range kills {
		cmd := exec.Command(os.Args[0], "-test.run=^TestProcessThatIsKilled$", "-test.v")
		cmd.Env = append(os.Environ(), "FDDHDB_TEST_KILL="+root)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		must(t, cmd.Start())
		var said bytes.Buffer
		after := r.IntN(4) // backups; then at some moment of the next ones
		timer := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			fmt.Fprintln(&said, lines.Text())
			rest, ok := strings.CutPrefix(lines.Text(), "backup ")
			if !ok {
				continue
			}
			id, n, _ := strings.Cut(rest, " ")
			if items[id], err = strconv.Atoi(n); err != nil {
				t.Fatalf("it said %q", lines.Text())
			}
			newest = max(newest, id)
			if after--; after < 0 {
				timer.Reset(time.Duration(r.IntN(60)) * time.Millisecond)
			}
		}
		timer.Stop()
		if err := cmd.Wait(); err == nil || strings.Contains(said.String(), "FAIL") {
			t.Fatalf("the process has ended: %v\n%s", err, said.String())
		}
		soundRepository(t, repo)
		all := need(backup.List(ctx, repo))(t)
		for id := range items {
			there, newer := false, 0
			for _, m := range all {
				there = there || m.ID == id
				if m.ID > id {
					newer++
				}
			}
			if !there && newer < keptAfterKills {
				t.Fatalf("backup %s is lost, of %d", id, len(items))
			}
		}
	}
	if newest == "" {
		t.Fatal("no backup was completed")
	}
	d := restored(t, repo, db.RestoreOptions{})
	if n, err := dbkit.MustCollection(t, d, "main").Count(); err != nil || n < items[newest] {
		t.Errorf("%d items in the newest backup, %d were written before one: %v", n, items[newest], err)
	}
	t.Logf("%d backups reported by %d processes that were killed", len(items), kills)
}

// TestProcessThatIsKilled writes, backs up and prunes until it is killed.
func TestProcessThatIsKilled(t *testing.T) {
	root := os.Getenv("FDDHDB_TEST_KILL")
	if root == "" {
		t.Skip("part of TestKilledBackupsAndPrunes")
	}
	repo := need(backup.Folder(filepath.Join(root, "backups")))(t)
	d := dbkit.MustOpen(t, filepath.Join(root, "db"), nil)
	c, err := d.Collection("main")
	if err != nil {
		c = need(d.CreateCollection(ctx, "main", dbkit.PairsSchema))(t)
	}
	mustBackup(t, d, repo, db.BackupOptions{})
	go func() {
		for {
			if _, err := backup.Prune(ctx, repo, backup.PruneOptions{Keep: keptAfterKills}); err != nil {
				t.Error(err)
			}
		}
	}()
	items := dbkit.Pairs(50, synth.Config{})
	for {
		n := need(c.Count())(t)
		for i, it := range items {
			it.Key = fmt.Sprint(n + i)
		}
		putAll(t, c, items)
		m := mustBackup(t, d, repo, db.BackupOptions{})
		fmt.Printf("backup %s %d\n", m.ID, n+len(items))
	}
}
