package natsproc_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/fddhdb/fddhdb/db/cluster/internal/natsproc"
)

// parentVariable makes the test executable a parent that starts one server, says
// which, and waits to be killed. Its value is a folder.
const parentVariable = "NATSPROC_TEST_PARENT"

func TestMain(m *testing.M) {
	natsproc.Main()
	if dir := os.Getenv(parentVariable); dir != "" {
		beParent(dir)
	}
	goleak.VerifyTestMain(m)
}

func beParent(dir string) {
	g, err := natsproc.Start(ctx, natsproc.Config{Dir: dir, Servers: 1})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(g.Pid(0))
	select {}
}
