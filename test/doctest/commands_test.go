package doctest

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/command"
)

const module = "github.com/fddhdb/fddhdb"

// fddhdbCommand is the command fddhdb in sessions. In blocks that are not run it only
// looks at its arguments. It returns the exit code.
func fddhdbCommand(args []string) int {
	if log := os.Getenv("DOCTEST_LOG"); log != "" {
		if problem := lookAtFddhdb(args); problem != "" {
			return noteProblem(log, problem)
		}
		return 0
	}
	folder := os.Getenv("DOCTEST_FOLDER")
	for i, arg := range args {
		scheme, path := "", arg
		if rest, ok := strings.CutPrefix(arg, "file://"); ok {
			scheme, path = "file://", rest
		}
		if strings.HasPrefix(path, "/mnt/") || strings.HasPrefix(path, "/srv/") {
			args[i] = scheme + folder + path
		}
	}
	return command.Main(args, os.Stdin, os.Stdout, os.Stderr)
}

// lookAtFddhdb returns what is wrong with the verb and the flags of a command line, or
// "".
func lookAtFddhdb(args []string) string {
	check := func(args ...string) string {
		var problem bytes.Buffer
		if command.Main(args, strings.NewReader(""), io.Discard, &problem) == 0 {
			return ""
		}
		return "fddhdb " + strings.Join(args, " ") + ": " + problem.String()
	}
	if len(args) == 0 {
		return ""
	}
	if !strings.ContainsAny(args[0], "./-") { // neither a folder nor a flag
		if problem := check("help", args[0]); problem != "" {
			return problem
		}
	}
	return check(slices.Insert(slices.Clone(args), 1, "--help")...)
}

func noteProblem(log, problem string) int {
	f, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o666)
	if err == nil {
		fmt.Fprintln(f, problem)
		f.Close()
	}
	return 1
}

// goCommand is the command go in sessions. It returns the exit code.
func goCommand(args []string) int {
	clone := os.Getenv("DOCTEST_CLONE")
	if log := os.Getenv("DOCTEST_LOG"); log != "" {
		if err := lookAtGo(clone, args); err != nil {
			return noteProblem(log, fmt.Sprintf("go %s: %v", strings.Join(args, " "), err))
		}
		return 0
	}
	var name string
	switch {
	case len(args) >= 2 && args[0] == "run" && args[1] == ".":
		name = os.Getenv("DOCTEST_PROGRAM")
	case len(args) >= 2 && args[0] == "install":
		if err := lookAtGo(clone, args); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
	if name == "" {
		fmt.Fprintln(os.Stderr, "documents do not run go", strings.Join(args, " "))
		return 1
	}
	return runProgram(name, args[2:])
}

// runProgram runs a program that addMain has gathered. It returns the exit code.
func runProgram(name string, args []string) int {
	cmd := exec.Command(os.Getenv("DOCTEST_PROGRAMS"), append([]string{name}, args...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// lookAtGo checks that the packages and tests exist that the arguments of go name.
func lookAtGo(clone string, args []string) error {
	dir := clone
	if len(args) > 2 && args[0] == "-C" {
		dir, args = filepath.Join(clone, args[1]), args[2:]
	}
	if len(args) < 2 {
		return fmt.Errorf("a command and a package are expected")
	}
	verb, rest := args[0], args[1:]
	var packages, patterns []string
	for i := 0; i < len(rest); i++ {
		arg := rest[i]
		switch {
		case arg == "-args", verb == "run" && len(packages) > 0:
			i = len(rest)
		case arg == "-run" || arg == "-bench" || arg == "-fuzz":
			i++
			if i < len(rest) {
				patterns = append(patterns, rest[i])
			}
		case arg == "." || strings.HasPrefix(arg, "./") || strings.HasPrefix(arg, module):
			packages = append(packages, arg)
		}
	}
	if len(packages) == 0 {
		return fmt.Errorf("no package is named")
	}
	var tests []byte
	for _, p := range packages {
		p, all := strings.CutSuffix(strings.TrimSuffix(p, "@latest"), "/...")
		folder := filepath.Join(dir, p)
		if inside, ok := strings.CutPrefix(p, module); ok {
			folder = filepath.Join(clone, inside)
		}
		if all {
			return nil
		}
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil || len(files) == 0 {
			return fmt.Errorf("there is no package %s", p)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				b, err := os.ReadFile(file)
				if err != nil {
					return err
				}
				tests = append(tests, b...)
			}
		}
	}
	return findTests(tests, patterns)
}

var testFunction = regexp.MustCompile(`(?m)^func ((?:Test|Benchmark|Fuzz|Example)\w*)\(`)

// findTests checks that each pattern selects a test or benchmark of a source file.
func findTests(source []byte, patterns []string) error {
	for _, pattern := range patterns {
		first, _, _ := strings.Cut(pattern, "/")
		if strings.ToLower(first) == "xxx" || first == "^$" {
			continue
		}
		re, err := regexp.Compile(first)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(testFunction.FindAllSubmatch(source, -1),
			func(f [][]byte) bool { return re.Match(f[1]) }) {
			return fmt.Errorf("no test or benchmark is named %s", pattern)
		}
	}
	return nil
}

var inline = regexp.MustCompile("`fddhdb ([^`]+)`")

// Commands within the text have verbs and flags that exist.
func TestInline(t *testing.T) {
	for _, d := range documents(t) {
		for i, line := range d.lines {
			for _, found := range inline.FindAllStringSubmatch(line, -1) {
				args := strings.Fields(regexp.MustCompile(`"[^"]*"|'[^']*'`).ReplaceAllString(found[1], "x"))
				if args[0] == "VERB" || args[0] == "DIR" {
					continue
				}
				if problem := lookAtFddhdb(args); problem != "" {
					t.Errorf("%s: %s", d.at(i), problem)
				}
			}
		}
	}
}

func TestLookThrough(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts many processes")
	}
	needShell(t)
	commands := commandFolder(t)
	for text, want := range map[string]string{
		"seed=1; fddhdb train a.db --bits 64 --seed $seed":                                             "",
		"for x in 1 2; do fddhdb search a.db --vectors q.npy --from a -k $x; done | tail -1":           "",
		"W=x\nrm -rf a.db\nfddhdb init a.db --codes 64 # codes":                                        "",
		"go -C test test ./doctest -run 'TestLook(Through|At)' -v\ngo -C examples/emoji run . cat":     "",
		"go install github.com/fddhdb/fddhdb/cmd/fddhdb@latest\ngo test ./db -run xxx -bench 'Update'": "",
		"fddhdb serch a.db":                          "serch",
		"fddhdb train a.db --bit 64":                 "--bit",
		"fddhdb train a.db --bits many":              "many",
		"if fddhdb train a.db":                       "yntax",
		"go -C test test ./doctest -run TestNothing": "TestNothing",
		"go test ./nowhere -run Test":                "nowhere",
		"go run github.com/fddhdb/fddhdb/nowhere":    "nowhere",
	} {
		problems := lookThrough(t, text, commands)
		if (want == "") != (problems == "") || !strings.Contains(problems, want) {
			t.Errorf("%s: %q, want %q", text, problems, want)
		}
	}
}
