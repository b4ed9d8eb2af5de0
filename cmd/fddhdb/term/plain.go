package term

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// unseen reports whether a terminal obeys a character instead of showing it: controls,
// and what turns the direction of text. n is its number of bytes: an invalid byte may be
// a control of a terminal without UTF-8.
func unseen(r rune, n int) bool { return !unicode.IsPrint(r) || r == utf8.RuneError && n == 1 }

// Plain returns text from a database or a file such that it cannot move the cursor or
// begin a line: unprintable characters are escaped as in Go.
func Plain(s string) string { return escaped(s, "") }

// escaped is Plain, but for some characters.
func escaped(s, but string) string {
	var b strings.Builder
	done := 0
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if unseen(r, n) && !strings.ContainsRune(but, r) {
			quoted := strconv.Quote(s[i : i+n])
			b.WriteString(s[done:i])
			b.WriteString(quoted[1 : len(quoted)-1])
			done = i + n
		}
		i += n
	}
	if done == 0 {
		return s
	}
	return b.String() + s[done:]
}

// A plainWriter writes text that people see. All of it is Plain, but for ends of lines
// and tabs.
type plainWriter struct {
	mu   sync.Mutex
	to   io.Writer
	part []byte // the beginning of a character, the rest of which comes with the next Write
}

// Write implements io.Writer.
func (w *plainWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	whole := append(w.part, p...)
	cut := len(whole)
	for back := 1; back < utf8.UTFMax && back <= len(whole); back++ {
		if start := len(whole) - back; utf8.RuneStart(whole[start]) {
			if !utf8.FullRune(whole[start:]) {
				cut = start
			}
			break
		}
	}
	w.part = bytes.Clone(whole[cut:])
	if _, err := io.WriteString(w.to, escaped(string(whole[:cut]), "\n\t")); err != nil {
		return 0, err
	}
	return len(p), nil
}

// JSON returns an object on a line. Characters that Plain escapes are escapes in it, also
// where JSON would leave them as they are.
func JSON(v any) ([]byte, error) {
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false) // keeps "image->text" readable
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	b := bytes.TrimSpace(line.Bytes())
	if bytes.IndexFunc(b, func(r rune) bool { return unseen(r, 0) }) < 0 {
		return b, nil
	}
	var out bytes.Buffer
	for _, r := range string(b) {
		switch {
		case !unseen(r, 0):
			out.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&out, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
	}
	return out.Bytes(), nil
}
