//go:build linux || darwin

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/creack/pty"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/clitest"
)

// A tabbed line is typed and completed. want is a part of what is then shown, and is not in the line.
type tabbed struct{ line, want string }

// TestTabRunsNothing presses Tab in bash, zsh and fish in a folder of a stranger, whose files have names that
// are commands. Nothing runs, and verbs, values and files are proposed.
func TestTabRunsNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for shells and their terminals")
	}
	for _, shell := range []struct {
		name  string
		press func(t *testing.T, dir string, lines []tabbed) string
	}{{"bash", tabInBash}, {"zsh", tabInZsh}, {"fish", tabInFish}} {
		t.Run(shell.name, func(t *testing.T) {
			if _, err := exec.LookPath(shell.name); err != nil {
				t.Skipf("%s is not installed", shell.name)
			}
			t.Parallel()
			dir := t.TempDir()
			clitest.Check(t, os.Mkdir(filepath.Join(dir, "ran"), 0o700))
			shown := shell.press(t, dir, strangeFiles(t, dir))
			if strings.Contains(shown, "\x1b]0;") || strings.Contains(shown, "--where=year") {
				t.Errorf("what a terminal or fddhdb would obey is proposed: %q", shown)
			}
			ran := clitest.Must(os.ReadDir(filepath.Join(dir, "ran")))(t)
			for _, file := range ran {
				t.Errorf("Tab has run the command of %s", file.Name())
			}
		})
	}
}

// strangeFiles makes s.db in a folder, and files whose names leave a file in the folder ran when a shell runs
// them. It returns lines to press Tab after.
func strangeFiles(t *testing.T, dir string) []tabbed {
	t.Helper()
	n := 0
	touch := func(before, after string) []string {
		n++
		command := fmt.Sprintf("%s>ran/%d%s", before, n, after)
		return []string{command + "1", fmt.Sprintf("%stouch ran/blank%d%s2", before, n, after)}
	}
	strange := slices.Concat(touch("$(", ")"), touch("`", "`"), touch("(", ")"), touch("a;", ";"),
		touch("b|", "|"),
		touch("c&", "&"), touch("<(", ")"), touch("=(", ")"), touch("good'$(", ")'"), touch("d\n", "\n"),
		touch("e\tf$(", ")"),
		[]string{"\x1b]0;title\x07", "--where=year=1", "-k", "~root", "{a,b}", "*", "…$(touch ran/dots)"})
	init := exec.Command("fddhdb", "init", "s.db", "--modality", "image:2")
	init.Dir = dir
	if out, err := init.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, name := range strange {
		if !strings.Contains(name, "/") {
			continue
		}
		clitest.Check(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700))
		clitest.Check(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	lines := []tabbed{{"fddhdb cou", "nt"}, {"fddhdb count ", "s.db"}, {"fddhdb update s.db --teacher ", "labels"},
		{"fddhdb eval s.db --vectors image=", ""}, {"fddhdb get s.db --collection=pa", ""},
		{"fddhdb get ~/s.db ", ""}, {"fddhdb get 's.db' \"x y\" ", ""}, {"fddhdb delete s.db -", ""},
		{"fddhdb get s.db $(touch ran/typed1) ", ""}, {"fddhdb get s.db `touch ran/typed2` ", ""},
		{"fddhdb get s.db --collection=$(>ran/typed3)= ", ""}, {`fddhdb get s.db "$(touch ran/typed4)" `, ""},
		{"fddhdb get s.db <(touch ran/typed5) ", ""}, {"fddhdb get s.db (touch ran/typed6) ", ""},
		{`fddhdb get s.db "${x:-$(touch ran/typed7)}" `, ""},
		{`fddhdb scan s.db --where 'x -$(>ran/typed8)='`, ""},
		{`fddhdb scan s.db --where=$(>ran/typed9)= `, ""}}
	for _, begin := range []string{"$", "`", "(", "a", "b|", `c\&`, "<", "=", `good\'`, `d\`, "e"} {
		lines = append(lines, tabbed{"fddhdb get s.db " + begin, ""})
	}
	return lines
}

// tabInBash presses Tab after lines in an interactive bash, and returns what the terminal has shown.
func tabInBash(t *testing.T, dir string, lines []tabbed) string {
	const functions = "/usr/share/bash-completion/bash_completion"
	if _, err := os.Stat(functions); err != nil {
		t.Skip("the package bash-completion is not installed")
	}
	return tabInTerminal(t, dir, lines,
		"bind 'set page-completions off'; bind 'set completion-query-items 0'; source "+
			functions+"; source <(fddhdb completion bash)", "bash", "--norc", "--noprofile", "-i")
}

func tabInZsh(t *testing.T, dir string, lines []tabbed) string {
	return tabInTerminal(t, dir, lines,
		"autoload -U compinit; compinit -u -D; source <(fddhdb completion zsh)", "zsh", "-f", "-i")
}

func tabInTerminal(t *testing.T, dir string, lines []tabbed, setup string, shell ...string) string {
	s := openTerminal(t, []string{"PS1=> ", "HOME=" + dir}, shell...)
	// or shells ask before they list much
	clitest.Check(t, pty.Setsize(s.tty, &pty.Winsize{Rows: 1000, Cols: 200}))
	s.sends("cd "+dir+"; "+setup+"; echo read''y"+enter, "ready")
	for i, l := range lines {
		s.sends(l.line, l.line[len("fddhdb "):])
		s.sends(tab+tab, l.want)
		// The shell reads the keys one after the other, so the end of the line comes after all that Tab does.
		s.sends(" "+tab+ctrlA+ctrlK+fmt.Sprintf("echo do''ne%d.", i)+enter, fmt.Sprintf("done%d.", i))
	}
	return s.all()
}

// tabInFish asks fish for what it proposes, and again behind each proposal.
func tabInFish(t *testing.T, dir string, lines []tabbed) string {
	script := filepath.Join(dir, "tab.fish")
	if err := os.WriteFile(script, []byte(`
fddhdb completion fish | source
for line in $argv
    echo "== $line"
    complete -C $line
    string match -q 'fddhdb get * ' -- $line; or continue
    for proposed in (complete -C $line | string replace -r '\t.*' '')
        complete -C "$line$proposed"
        complete -C "$line$proposed "
        complete -C "$line"(string escape -- $proposed)" "
    end
end
`), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("fish", "--no-config", script)
	for _, l := range lines {
		cmd.Args = append(cmd.Args, l.line)
	}
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("fish: %v: %s", err, out)
	}
	for _, l := range lines {
		_, shown, ok := strings.Cut(string(out), "== "+l.line+"\n")
		shown, _, _ = strings.Cut(shown, "\n== ")
		if !ok || !strings.Contains(shown, l.want) {
			t.Errorf("%s: %q is not proposed: %q", l.line, l.want, shown)
		}
	}
	return string(out)
}
