package encoder

import (
	"os"
	"path/filepath"
	"testing"
)

// A command is trusted in one database, word for word, also by another path to it, and whatever else
// stands in the file.
func TestTrust(t *testing.T) {
	home := t.TempDir()
	t.Setenv("XDG_STATE_HOME", filepath.Join(home, "state"))
	mine, other := filepath.Join(home, "mine.db"), filepath.Join(home, "other.db")
	check(t, os.Mkdir(mine, 0o700))
	check(t, os.Mkdir(other, 0o700))
	trusts := func(want bool, dir string, command ...string) {
		t.Helper()
		if is, err := Trusts(dir, command); err != nil || is != want {
			t.Errorf("%s, %q: %v, %v", dir, command, is, err)
		}
	}
	trusts(false, mine, "python3", "a b.py")
	check(t, Trust(mine, []string{"python3", "a b.py"}))
	path, err := TrustFile()
	check(t, err)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	check(t, err)
	_, err = f.WriteString(`{"database":"` + mine + `","command":["cut o`)
	check(t, err)
	check(t, f.Close())
	check(t, Trust(mine, []string{"awk"}))
	check(t, Trust(mine, []string{"awk"}))
	trusts(true, mine, "python3", "a b.py")
	trusts(true, mine, "awk")
	trusts(false, mine, "python3", "a", "b.py")
	trusts(false, mine, "python3")
	trusts(false, other, "python3", "a b.py")
	if err := os.Symlink(mine, filepath.Join(home, "link")); err == nil {
		trusts(true, filepath.Join(home, "link"), "awk")
	}
	t.Chdir(home)
	trusts(true, "mine.db", "awk")
	if text, err := os.ReadFile(path); err != nil || len(text) > 1000 {
		t.Errorf("%s, %v", text, err)
	}

	// Without a home nothing is trusted, and nothing can be.
	for _, name := range []string{"XDG_STATE_HOME", "XDG_CONFIG_HOME", "HOME", "AppData"} {
		t.Setenv(name, "")
	}
	trusts(false, mine, "awk")
	if err := Trust(mine, []string{"awk"}); err == nil {
		t.Error("trusted, nowhere")
	}
}
