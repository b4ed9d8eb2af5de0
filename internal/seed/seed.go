package seed

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	_ "pgregory.net/rapid" // it has the flag -rapid.seed, which is set here
)

// variable is the environment variable that moves the seeds of every package. A flag
// would not do: packages that do not know it refuse it.
const variable = "FDDHDB_SEED"

// moved is the value of -seed; 0: the seeds are fixed.
var moved uint64

func init() {
	flag.Func("seed", "`N`, where randomness begins, or new, a seed of its own for this run; fixed if empty",
		set)
	if _, given := os.LookupEnv("RAPID_SEED"); !given {
		rapid(1)
	}
	if s := os.Getenv(variable); s != "" {
		if err := set(s); err != nil {
			fmt.Fprintf(os.Stderr, "%s=%s: %v\n", variable, s, err)
			os.Exit(2)
		}
	}
}

// set moves the seeds. New seeds are below 2^32: they are short to repeat, and tests
// that count up from one never overflow.
func set(s string) error {
	n, err := strconv.ParseUint(s, 10, 64)
	if s == "new" {
		n, err = 1+rand.Uint64N(1<<32-1), nil
	}
	if err != nil || n == 0 {
		return fmt.Errorf("a seed is a number from 1 on, or new")
	}
	moved = n
	rapid(n)
	return nil
}

// rapid sets the seed of the property tests.
func rapid(n uint64) {
	if err := flag.Set("rapid.seed", strconv.FormatUint(n, 10)); err != nil {
		panic(err)
	}
}

// From returns the first seed of the test t: fixed, unless -seed has moved it. A test
// that tries several seeds counts up from it. A moved seed is logged to t. Goroutines
// may share t and call From.
func From(t testing.TB, fixed uint64) uint64 {
	if moved == 0 {
		return fixed
	}
	t.Helper()
	t.Logf("the seed is %d: repeat it with -args -seed %d", moved, moved)
	return moved
}

// Rand returns a source of random numbers that begins with From(t, fixed). stream tells
// several sources of one test apart. Goroutines must not share a source.
func Rand(t testing.TB, fixed, stream uint64) *rand.Rand {
	t.Helper()
	return rand.New(rand.NewPCG(From(t, fixed), stream))
}
