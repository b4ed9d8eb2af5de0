package term

import (
	"cmp"
	"io"
	"os"
	"runtime"
	"strings"

	"golang.org/x/term"
)

// File returns f as a terminal, or nil if it is none.
func File(f any) *os.File {
	file, ok := f.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return nil
	}
	return file
}

// inColour reports whether output to f may use colours: on terminals that have them,
// unless NO_COLOR is set (https://no-color.org).
func inColour(f io.Writer) bool {
	if File(f) == nil || os.Getenv("NO_COLOR") != "" {
		return false
	}
	switch os.Getenv("TERM") {
	case "dumb":
		return false
	case "":
		return runtime.GOOS == "windows" && os.Getenv("WT_SESSION") != "" // Windows Terminal
	}
	return true
}

// showsBlocks reports whether f is a terminal with block characters, for small charts.
func showsBlocks(f io.Writer) bool {
	if File(f) == nil || os.Getenv("TERM") == "dumb" {
		return false
	}
	if runtime.GOOS == "windows" {
		return os.Getenv("WT_SESSION") != "" // Windows Terminal
	}
	locale := strings.ToLower(cmp.Or(os.Getenv("LC_ALL"), os.Getenv("LC_CTYPE"), os.Getenv("LANG")))
	return strings.Contains(locale, "utf-8") || strings.Contains(locale, "utf8")
}
