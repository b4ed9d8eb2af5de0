package encoder

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// A wordPiece cuts texts into tokens as BERT does: it cleans the text, cuts it at blanks and around
// punctuation, and takes the longest token of the vocabulary again and again.
type wordPiece struct {
	clean, chinese, unaccent, lower bool

	vocabulary map[string]int
	unknown    int    // token of what has none; -1: there is none
	within     string // prefix of tokens that do not begin a word
	maxWord    int    // a longer word is unknown, in characters
	longest    int    // token, in bytes

	// maxText is the length of a text behind which it is cut, in characters.
	maxText int
}

// maxTokens bounds the tokens of a text; those behind them do not count. This is what model2vec does.
const maxTokens = 512

// readWordPiece reads a tokenizer.json, in the form of the library tokenizers.
func readWordPiece(text []byte) (*wordPiece, error) {
	var form struct {
		Normalizer *struct {
			Type         string
			CleanText    *bool `json:"clean_text"`
			Chinese      *bool `json:"handle_chinese_chars"`
			StripAccents *bool `json:"strip_accents"`
			Lowercase    *bool
		}
		PreTokenizer *struct{ Type string } `json:"pre_tokenizer"`
		Model        struct {
			Type       string
			Unknown    *string         `json:"unk_token"`
			Within     *string         `json:"continuing_subword_prefix"`
			MaxWord    *int            `json:"max_input_chars_per_word"`
			Vocabulary json.RawMessage `json:"vocab"`
		}
	}
	if err := json.Unmarshal(text, &form); err != nil {
		return nil, err
	}
	n, model := form.Normalizer, &form.Model
	switch {
	case model.Type != "WordPiece":
		return nil, fmt.Errorf("a tokenizer of type %.40q: models with WordPiece are possible, such as potion-base-8M", model.Type)
	case n == nil || n.Type != "BertNormalizer":
		return nil, errors.New("no BertNormalizer, as models such as potion-base-8M have")
	case form.PreTokenizer == nil || form.PreTokenizer.Type != "BertPreTokenizer":
		return nil, errors.New("no BertPreTokenizer, as models such as potion-base-8M have")
	}
	w := &wordPiece{clean: or(n.CleanText, true), chinese: or(n.Chinese, true), lower: or(n.Lowercase, true),
		unknown: -1, within: or(model.Within, "##"), maxWord: or(model.MaxWord, 100)}
	w.unaccent = or(n.StripAccents, w.lower)
	if err := json.Unmarshal(model.Vocabulary, &w.vocabulary); err != nil {
		return nil, fmt.Errorf("the vocabulary: %w", err)
	}
	if len(w.vocabulary) == 0 {
		return nil, errors.New("the vocabulary is empty")
	}
	if i, has := w.vocabulary[or(model.Unknown, "[UNK]")]; has {
		w.unknown = i
	}
	lengths := make([]int, 0, len(w.vocabulary))
	for token := range w.vocabulary {
		lengths = append(lengths, utf8.RuneCountInString(token))
		w.longest = max(w.longest, len(token))
	}
	slices.Sort(lengths)
	middle := len(lengths) / 2
	w.maxText = maxTokens * ((lengths[middle] + lengths[(len(lengths)-1)/2]) / 2)
	return w, nil
}

func or[T any](x *T, otherwise T) T {
	if x == nil {
		return otherwise
	}
	return *x
}

// tokens returns the token numbers of a text. It leaves out unknown words.
func (w *wordPiece) tokens(text string) []int {
	for i, n := 0, 0; i < len(text); n++ {
		if n == w.maxText {
			text = text[:i]
			break
		}
		_, size := utf8.DecodeRuneInString(text[i:])
		i += size
	}
	var all []int
	for _, word := range strings.FieldsFunc(w.normalized(text), unicode.IsSpace) {
		for len(word) > 0 {
			n := strings.IndexFunc(word, isPunctuation)
			if n == 0 {
				_, n = utf8.DecodeRuneInString(word)
			} else if n < 0 {
				n = len(word)
			}
			all = append(all, w.pieces(word[:n])...)
			word = word[n:]
		}
		if len(all) >= maxTokens {
			return all[:maxTokens]
		}
	}
	return all
}

// pieces returns the tokens of a word; none if it has a part that no token has.
func (w *wordPiece) pieces(word string) (all []int) {
	if utf8.RuneCountInString(word) > w.maxWord {
		return nil
	}
	prefix := ""
	for len(word) > 0 {
		end := min(len(word), w.longest)
		for end < len(word) && !utf8.RuneStart(word[end]) {
			end--
		}
		token, is := w.vocabulary[prefix+word[:end]]
		for !is && end > 0 {
			_, size := utf8.DecodeLastRuneInString(word[:end])
			end -= size
			token, is = w.vocabulary[prefix+word[:end]]
		}
		if end == 0 {
			return nil
		}
		if token != w.unknown {
			all = append(all, token)
		}
		word, prefix = word[end:], w.within
	}
	return all
}

// normalized is the text as tokens have it.
func (w *wordPiece) normalized(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case w.clean && unicode.IsSpace(r):
			b.WriteByte(' ')
		case w.clean && (r == 0 || r == utf8.RuneError || unicode.Is(unicode.C, r)):
		case w.chinese && isIdeograph(r):
			b.WriteString(" " + string(r) + " ")
		default:
			b.WriteRune(r)
		}
	}
	text = b.String()
	if w.unaccent {
		text = strings.Map(func(r rune) rune {
			if unicode.Is(unicode.Mn, r) {
				return -1
			}
			return r
		}, norm.NFD.String(text))
	}
	if w.lower {
		text = strings.ToLower(text)
	}
	return text
}

// isPunctuation reports whether a character is a word of its own: punctuation, and all ASCII that is neither
// letter nor digit.
func isPunctuation(r rune) bool {
	return unicode.IsPunct(r) || r < unicode.MaxASCII && (r >= '!' && r <= '/' || r >= ':' && r <= '@' ||
		r >= '[' && r <= '`' || r >= '{' && r <= '~')
}

// ideographs are the blocks of Unicode whose characters are words to BERT.
var ideographs = [][2]rune{{0x4e00, 0x9fff}, {0x3400, 0x4dbf}, {0x20000, 0x2a6df}, {0x2a700, 0x2b73f},
	{0x2b740, 0x2b81f}, {0x2b920, 0x2ceaf}, {0xf900, 0xfaff}, {0x2f800, 0x2fa1f}}

func isIdeograph(r rune) bool {
	return slices.ContainsFunc(ideographs, func(b [2]rune) bool { return r >= b[0] && r <= b[1] })
}
