package term

import (
	"cmp"
	"io"
	"os"
	"runtime"
	"strings"

	"golang.org/x/term"
)

// File returns the terminal that f is, nil if it is none.
func File(f any) *os.File {
	file, ok := f.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return nil
	}
	return file
}

// inColour says whether what is written to f may be set off by colours: on terminals that
// can do it, and nowhere if NO_COLOR is set (https://no-color.org).
func inColour(f io.Writer) bool {
	if File(f) == nil || os.Getenv("NO_COLOR") != "" {
		return false
	}
	switch os.Getenv("TERM") {
	case "dumb":
		return false
	case "":
		return runtime.GOOS == "windows" && os.Getenv("WT_SESSION") != "" // its own terminal
	}
	return true
}

// showsBlocks says whether what is written to f is seen on a terminal that has block
// characters, for small charts.
func showsBlocks(f io.Writer) bool {
	if File(f) == nil || os.Getenv("TERM") == "dumb" {
		return false
	}
	if runtime.GOOS == "windows" {
		return os.Getenv("WT_SESSION") != "" // its own terminal
	}
	locale := strings.ToLower(cmp.Or(os.Getenv("LC_ALL"), os.Getenv("LC_CTYPE"), os.Getenv("LANG")))
	return strings.Contains(locale, "utf-8") || strings.Contains(locale, "utf8")
}

func bold(s string) string { return "\x1b[1m" + s + "\x1b[0m" }
func red(s string) string  { return "\x1b[31m" + s + "\x1b[0m" }
