package metamorphic

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/internal/seed"
	"github.com/fddhdb/fddhdb/test/metamorphic/program"
)

var (
	given      = flag.String("ops", "", "a file with the program to carry out, and no other")
	operations = flag.Int("operations", 0,
		"how many operations to carry out, in programs of many seeds; some thousands if 0")
	shrinking = flag.Duration("shrink", 5*time.Minute, "for how long to shrink a program that fails")
)

// profileOf returns a profile that varies with the seed.
func profileOf(seed uint64, lanes, short bool) Profile {
	p := Profile{Ops: 400, Lanes: lanes, Disk: seed%50 == 49, Bulk: seed%20 == 13}
	if short {
		p.Ops = 150
	}
	if p.Disk || p.Bulk { // operations take longer there
		p.Ops /= 3
	}
	return p
}

// carryOut runs programs until they have had n operations.
func carryOut(t *testing.T, n int, lanes bool) Counts {
	t.Helper()
	all, start, told := Counts{}, time.Now(), time.Now()
	first := seed.From(t, 0)
	for s := first; all.All() < n; s++ {
		p := Generate(s, profileOf(s, lanes, *operations == 0))
		counts, err := Run(p)
		if all.Add(counts); err != nil {
			fail(t, fmt.Sprintf("seed %d", s), p, err)
		}
		if *operations > 0 && time.Since(told) > time.Minute {
			told = time.Now()
			t.Logf("seed %d, %d operations, %v", s, all.All(), time.Since(start).Round(time.Second))
		}
	}
	t.Logf("%d operations of seeds from %d on, %v:%s", all.All(), first,
		time.Since(start).Round(time.Millisecond), all)
	return all
}

// fail shrinks a program that fails, and ends the test.
func fail(t *testing.T, which string, p *program.Program, err error) {
	t.Helper()
	t.Logf("%s: %v; shrinking", which, err)
	shrunk := program.Shrink(Upto(p, err), time.Now().Add(*shrinking), func(p *program.Program) bool {
		for range 3 { // with goroutines, failing needs luck
			if _, again := Run(p); again != nil && verbOf(again) == verbOf(err) {
				return true
			}
		}
		return false
	})
	_, again := Run(shrunk)
	f, ferr := os.CreateTemp("", "metamorphic-*.ops")
	if ferr == nil {
		_, ferr = shrunk.WriteTo(f)
		ferr = errors.Join(ferr, f.Close())
	}
	if ferr != nil {
		t.Error(ferr)
	}
	t.Fatalf("%s: %v\nshrunk to %d operations: %v\ngo -C test test ./metamorphic -run TestProgram -args -ops %s\n%s",
		which, err, len(shrunk.Ops), again, f.Name(), shrunk)
}

// verbOf returns the kind of the operation that failed.
func verbOf(err error) string {
	var f *Failure
	errors.As(err, &f)
	return f.Do
}

// most returns a in a full test and b in a short one, unless a flag gives the number.
func most(a, b int) int {
	switch {
	case *operations > 0:
		return *operations
	case testing.Short():
		return b
	}
	return a
}

// Whatever a program does, in any order and with any options, the database agrees with
// the model.
func TestHistories(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine, and the race detector makes it slow")
	}
	const enough = 6400
	counts := carryOut(t, most(enough, 250), false)
	// The fixed seeds do everything. Other seeds may leave rare operations out.
	all := enough
	if seed.From(t, 0) != 0 {
		all *= 20
	}
	if counts.All() < all {
		return
	}
	for do := range verbs {
		if n := counts[do]; n[1] == 0 && do != "open" && do != "end" && do != "fill" { // fills are in batches
			t.Errorf("%s: %d tried, none has done what it is for", do, n[0])
		}
	}
}

// The same with goroutines side by side.
func TestConcurrentHistories(t *testing.T) {
	carryOut(t, most(1000, 100), true)
}

// A failed program is read from its file and run.
func TestProgram(t *testing.T) {
	if *given == "" {
		t.Skip("no -ops")
	}
	f, err := os.Open(*given)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p, err := program.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	counts, err := Run(p)
	t.Logf("%d operations:%s", counts.All(), counts)
	if err != nil {
		t.Fatal(err)
	}
}
