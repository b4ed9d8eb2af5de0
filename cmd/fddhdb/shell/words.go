package shell

import "strings"

// A word is a word of a line of the shell.
type word struct {
	text  string // without quotes
	start int    // byte of the line at which it begins
	quote byte   // first quote in it, 0 if there is none
}

// SplitWords cuts a line into words like a POSIX shell. Blanks separate words. '...' is
// literal. In "..." a backslash escapes only ", \, $, ` and the end of a line; outside
// of quotes it escapes any character. # begins a comment where a word could begin. A ; at
// the end of the line is ignored: people type it from habit. Nothing is expanded.
//
// open is the quote or backslash that the line ends in, or 0 if the line is complete.
// The last word then reaches to the end of the line.
func SplitWords(line string) (words []word, open byte) {
	var text strings.Builder
	var w word
	inWord := false
	begin := func(i int) {
		if !inWord {
			inWord, w = true, word{start: i}
		}
	}
	end := func() {
		if inWord {
			w.text = text.String()
			words = append(words, w)
			text.Reset()
			inWord = false
		}
	}
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case open == '\'':
			if c == '\'' {
				open = 0
			} else {
				text.WriteByte(c)
			}
		case open == '"' && c == '"':
			open = 0
		case open == '"' && c == '\\' && i+1 < len(line) && strings.IndexByte("\"\\$`\n", line[i+1]) >= 0:
			if i++; line[i] != '\n' {
				text.WriteByte(line[i])
			}
		case open == '"':
			text.WriteByte(c)
		case c == '\'' || c == '"':
			begin(i)
			if open = c; w.quote == 0 {
				w.quote = c
			}
		case c == '\\' && i+1 == len(line):
			begin(i)
			open = c
		case c == '\\' && line[i+1] == '\n':
			i++
		case c == '\\':
			begin(i)
			i++
			text.WriteByte(line[i])
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			end()
		case c == ';' && strings.Trim(line[i:], "; \t\r\n") == "":
			end()
			return words, 0
		case c == '#' && !inWord:
			rest := strings.IndexByte(line[i:], '\n')
			if rest < 0 {
				return words, 0
			}
			i += rest
		default:
			begin(i)
			text.WriteByte(c)
		}
	}
	end()
	return words, open
}

// Unquoted returns the words without quotes.
func Unquoted(words []word) []string {
	list := make([]string, len(words))
	for i, w := range words {
		list[i] = w.text
	}
	return list
}

// QuoteWord quotes a word such that SplitWords reads it back.
func QuoteWord(s string) string {
	if s != "" && !strings.HasPrefix(s, "#") && !strings.HasSuffix(s, ";") && !strings.ContainsAny(s, " \t\r\n'\"\\") {
		return s
	}
	if !strings.ContainsAny(s, "\"\\$`") {
		return `"` + s + `"`
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
