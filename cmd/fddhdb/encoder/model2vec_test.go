package encoder

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/db"
)

// words are the tokens of the model of the tests, by number.
var words = []string{"[PAD]", "[UNK]", "red", "car", "##s", "night", "play", "##ing", "##ed", ",", "cafe",
	"夜", "night-", "2021", "i"}

// tokenizerOf returns a tokenizer.json with these tokens.
func tokenizerOf(tokens []string) string {
	vocabulary := map[string]int{}
	for i, token := range tokens {
		vocabulary[token] = i
	}
	text, _ := json.Marshal(vocabulary) // it cannot fail
	return `{"version":"1.0","added_tokens":[{"id":0,"content":"[PAD]","special":true}],"normalizer":{
"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,"strip_accents":null,"lowercase":true},
"pre_tokenizer":{"type":"BertPreTokenizer"},"post_processor":null,"model":{"type":"WordPiece","unk_token":"[UNK]",
"continuing_subword_prefix":"##","max_input_chars_per_word":100,"vocab":` + string(text) + `}}`
}

// A stored is a tensor of a file.
type stored struct {
	kind  string
	shape []int
	data  []byte
}

func numbersOf(kind string, x any, shape ...int) stored {
	var b bytes.Buffer
	_ = binary.Write(&b, binary.LittleEndian, x) // to memory
	return stored{kind, shape, b.Bytes()}
}

// safetensorsOf returns a file of tensors.
func safetensorsOf(all map[string]stored) []byte {
	header, data := map[string]any{"__metadata__": map[string]string{"format": "np"}}, []byte(nil)
	for name, x := range all {
		header[name] = map[string]any{"dtype": x.kind, "shape": x.shape,
			"data_offsets": []int{len(data), len(data) + len(x.data)}}
		data = append(data, x.data...)
	}
	text, _ := json.Marshal(header) // it cannot fail
	return slices.Concat(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text, data)
}

// modelOf writes the files of a model.
func modelOf(t testing.TB, tokenizer, config string, tensors map[string]stored) (dir string) {
	t.Helper()
	dir = t.TempDir()
	check(t, os.WriteFile(filepath.Join(dir, "tokenizer.json"), []byte(tokenizer), 0o600))
	check(t, os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o600))
	check(t, os.WriteFile(filepath.Join(dir, "model.safetensors"), safetensorsOf(tensors), 0o600))
	return dir
}

// embedding is number j of token i: it can be stored exactly in all types.
func embedding(i, j int) float32 { return float32((i*7+j*j*3)%31 - 15) }

// matrix returns the embeddings of n tokens.
func matrix(n int) (x []float32) {
	for i := range n {
		for j := range dim {
			x = append(x, embedding(i, j))
		}
	}
	return x
}

// The vector of a text is the mean of the vectors of its tokens, whatever type these have.
func TestModel2vec(t *testing.T) {
	n := len(words)
	x := matrix(n)
	halves, brains, bytes := make([]uint16, len(x)), make([]uint16, len(x)), make([]int8, len(x))
	wide := make([]float64, len(x))
	for i, v := range x {
		wide[i], bytes[i], brains[i] = float64(v), int8(v), uint16(math.Float32bits(v)>>16)
		if v != 0 { // 5 bits of exponent, 10 of mantissa
			b := math.Float32bits(v)
			halves[i] = uint16(b>>31<<15 | (b>>23&255-127+15)<<10 | b>>13&1023)
		}
	}
	// Rows in another order, with a weight for each token.
	mapping, shuffled, weights := make([]int64, n), make([]float32, len(x)), make([]float32, n)
	for i := range n {
		mapping[i], weights[i] = int64(n-1-i), float32(i)/4
		copy(shuffled[(n-1-i)*dim:], x[i*dim:(i+1)*dim])
	}
	of := func(kind string, x any) map[string]stored {
		return map[string]stored{"embeddings": numbersOf(kind, x, n, dim)}
	}
	weighted := of("F32", shuffled)
	weighted["weights"], weighted["mapping"] = numbersOf("F32", weights, n), numbersOf("I64", mapping, n)
	for name, tensors := range map[string]map[string]stored{"F32": of("F32", x), "F64": of("F64", wide),
		"F16": of("F16", halves), "BF16": of("BF16", brains), "I8": of("I8", bytes), "weights": weighted} {
		for _, normalize := range []bool{false, true} {
			dir := modelOf(t, tokenizerOf(words), fmt.Sprintf(`{"normalize":%v,"hidden_dim":5}`, normalize), tensors)
			e := New(Program{Modality: "text", Command: []string{"model2vec", filepath.Base(dir)},
				Dir: filepath.Dir(dir)})
			for text, tokens := range map[string][]string{
				"red cars":                   {"red", "car", "##s"},
				"  RED,\tcars\n":             {"red", ",", "car", "##s"},
				"played playing players car": {"play", "##ed", "play", "##ing", "car"}, // "##er" is unknown
				"Café café":                  {"cafe", "cafe"},
				"in夜2021":                    {"夜", "2021"}, // "##n" is unknown
				"night-night":                {"night", "night"},
				"I\u0000\u200b \ufffdİ":      {"i", "i"},
				"[UNK] red":                  {"red"},
				strings.Repeat("red ", 600):  slices.Repeat([]string{"red"}, 512),
			} {
				got, err := vector(t.Context(), e, text)
				check(t, err)
				want := make([]float64, dim)
				for _, token := range tokens {
					i := slices.Index(words, token)
					for j := range want {
						weight := 1.
						if name == "weights" {
							weight = float64(weights[i])
						}
						want[j] += weight * float64(embedding(i, j)) / float64(len(tokens))
					}
				}
				length := 1.
				if normalize {
					length = 0
					for _, v := range want {
						length += v * v
					}
					length = math.Sqrt(length)
				}
				for j, v := range want {
					if math.Abs(float64(got.Dense[j])-v/length) > 1e-5 {
						t.Errorf("%s, normalize %v: %.20q: %v, want %v / %v", name, normalize, text, got.Dense,
							want, length)
						break
					}
				}
			}
			for _, text := range []string{"unknown", "🐈", strings.Repeat("s", 101)} {
				_, err := vector(t.Context(), e, text)
				fails(t, err, Refused, "the model knows no word of")
			}
			_, err := e.Encode(t.Context(), dim+1, []string{"red"})
			fails(t, err, Failed, "a vector of 5 numbers, the modality has 6 dimensions")
			e.Close()
		}
	}
}

func TestHalf(t *testing.T) {
	for h, want := range map[uint16]float64{0: 0, 0x3c00: 1, 0xc000: -2, 1: math.Ldexp(1, -24), 0x7bff: 65504,
		0x0400: math.Ldexp(1, -14), 0x3555: 0.333251953125, 0xfc00: math.Inf(-1)} {
		if got := half(h); got != want {
			t.Errorf("%#x: %v, want %v", h, got, want)
		}
	}
	if x := half(0x7e00); !math.IsNaN(x) {
		t.Errorf("NaN is %v", x)
	}
}

// A model that cannot be used is refused with the file that is wrong.
func TestFindModel2vec(t *testing.T) {
	good := map[string]stored{"embeddings": numbersOf("F32", matrix(len(words)), len(words), dim)}
	tokenizer := tokenizerOf(words)
	for _, c := range []struct {
		want, tokenizer, config string
		tensors                 map[string]stored
	}{
		{"", tokenizer, "{}", good},
		{`tokenizer.json: a tokenizer of type "Unigram": models with WordPiece are possible`,
			strings.Replace(tokenizer, "WordPiece", "Unigram", 1), "{}", good},
		{"tokenizer.json: no BertNormalizer", strings.Replace(tokenizer, "BertNormalizer", "NFC", 1), "{}", good},
		{"tokenizer.json: no BertPreTokenizer", strings.Replace(tokenizer, "BertPre", "Meta", 1), "{}", good},
		{"tokenizer.json: the vocabulary is empty", tokenizerOf(nil), "{}", good},
		{"tokenizer.json: the vocabulary: json", `{"normalizer":{"type":"BertNormalizer"},
"pre_tokenizer":{"type":"BertPreTokenizer"},"model":{"type":"WordPiece","vocab":[["a",1]]}}`, "{}", good},
		{"tokenizer.json: unexpected end", tokenizer[:100], "{}", good},
		{"config.json: json", tokenizer, `{"normalize":"yes"}`, good},
		{`no matrix "embeddings"`, tokenizer, "{}", map[string]stored{"x": good["embeddings"]}},
		{"14 vectors for the 15 tokens", tokenizer, "{}",
			map[string]stored{"embeddings": numbersOf("F32", matrix(14), 14, dim)}},
		{`tensor "weights" has 3 x 1 numbers, and the tokenizer has 15 tokens`, tokenizer, "{}",
			map[string]stored{"embeddings": good["embeddings"],
				"weights": numbersOf("F32", []float32{1, 2, 3}, 3)}},
		{`tensor "embeddings": numbers of type "F8"`, tokenizer, "{}",
			map[string]stored{"embeddings": {"F8", []int{15, dim}, make([]byte, 75)}}},
		{"are not within the file", tokenizer, "{}",
			map[string]stored{"embeddings": {"F32", []int{1 << 30, 1 << 30}, make([]byte, 75)}}},
	} {
		dir := modelOf(t, c.tokenizer, c.config, c.tensors)
		err := (&Program{Modality: "text", Command: []string{"model2vec", dir}}).Find()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	dir := modelOf(t, tokenizer, "{}", good)
	for want, p := range map[string]Program{
		"of texts alone":            {Input: db.InputFile, Command: []string{"model2vec", dir}},
		"model2vec DIR is expected": {Command: []string{"model2vec"}},
		"nowhere":                   {Command: []string{"model2vec", filepath.Join(dir, "nowhere")}},
	} {
		if err := p.Find(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	// A file that is cut while it is in use.
	e := New(Program{Modality: "text", Command: []string{"model2vec", dir}})
	defer e.Close()
	_, err := vector(t.Context(), e, "red")
	check(t, err)
	check(t, os.Truncate(filepath.Join(dir, "model.safetensors"), 300))
	_, err = vector(t.Context(), e, "i")
	fails(t, err, Failed, "the file of the model has changed")
}

// FuzzModel2vec: a model of any bytes gives a vector of finite numbers, or an error.
func FuzzModel2vec(f *testing.F) {
	good := map[string]stored{"embeddings": numbersOf("F32", matrix(len(words)), len(words), dim)}
	f.Add([]byte(tokenizerOf(words)), safetensorsOf(good), "red cars")
	good["mapping"] = numbersOf("I64", make([]int64, 15), 15)
	good["weights"] = numbersOf("F16", make([]int16, 15), 15)
	f.Add([]byte(tokenizerOf(words)), safetensorsOf(good), "playing\x80")
	f.Add([]byte(tokenizerOf(words)), []byte("\xff\xff\xff\xff\xff\xff\xff\xff{}"), "")
	f.Add([]byte(tokenizerOf(words)), []byte("\x02\x00\x00\x00\x00\x00\x00\x00{}"), "")
	f.Fuzz(func(t *testing.T, tokenizer, file []byte, text string) {
		w, err := readWordPiece(tokenizer)
		if err != nil {
			w, _ = readWordPiece([]byte(tokenizerOf(words)))
		}
		m := staticModel{wordPiece: w, normalize: true}
		if err := m.read(bytes.NewReader(file), int64(len(file))); err != nil {
			m.tokens(text)
			return
		}
		x, err := m.vector(text)
		for _, v := range x.Dense {
			if v-v != 0 || err != nil {
				t.Errorf("%v, %v", x.Dense, err)
			}
		}
	})
}

// BenchmarkModel2vec makes the vector of a sentence of 12 words by a model of the size of potion-base-8M.
func BenchmarkModel2vec(b *testing.B) {
	const tokens, dim = 29528, 256
	all := slices.Clone(words)
	for i := len(all); i < tokens; i++ {
		all = append(all, fmt.Sprint("token", i))
	}
	dir := modelOf(b, tokenizerOf(all), `{"normalize":true}`,
		map[string]stored{"embeddings": numbersOf("F32", make([]float32, tokens*dim), tokens, dim)})
	e := New(Program{Modality: "text", Command: []string{"model2vec", dir}})
	defer e.Close()
	texts := []string{"red cars, playing at night: token100 token2000 token30 cafe i played token29000"}
	for b.Loop() {
		if _, err := e.Encode(b.Context(), dim, texts); err != nil {
			b.Fatal(err)
		}
	}
}
