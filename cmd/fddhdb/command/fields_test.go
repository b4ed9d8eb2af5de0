package command

import (
	"testing"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/clitest"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
)

// Integers do not go through float64, in either kind of file.
func TestFieldsPrecision(t *testing.T) {
	f := empty(t)
	must(t, "init", f.db, "--modality", "image:1", "--field", "n:int")
	clitest.WriteFile(t, f.path("a.csv"), "\ufeffn:int\r\n9007199254740993\r\n")
	clitest.WriteFile(t, f.path("a.jsonl"), `{"n": 9007199254740993}`)
	clitest.WriteFile(t, f.path("key"), "k\n")
	for _, file := range []string{"a.csv", "a.jsonl"} {
		must(t, "import", f.db, "--fields", f.path(file), "--keys", f.path("key"))
		if got, want := must(t, "get", f.db, "k", "--json"),
			`{"key":"k","labels":[],"fields":{"n":9007199254740993}}`+"\n"; got != want {
			t.Errorf("%s: %s", file, got)
		}
	}
	for name, text := range map[string]string{
		"ragged.csv": "n:int\n1,2\n", "quote.csv": "n:int\n\"1\n", "none.csv": "",
		"twice.csv":  "n:int,n:int\n1,2\n",
		"list.jsonl": "[1]\n", "blank.jsonl": "\n", "half.jsonl": "{\"n\":\n",
		"two.jsonl": "{\"n\":1} {\"n\":2}\n", "unknown.jsonl": "{\"m\":1}\n",
		"real.jsonl": "{\"n\":1.5}\n",
	} {
		clitest.WriteFile(t, f.path(name), text)
		if code, _, stderr := do(t, "import", f.db, "--fields", f.path(name), "--keys",
			f.path("key")); code != exit.Failed {
			t.Errorf("%s: exit code %d, %q", name, code, stderr)
		}
	}
}
