package metamorphic

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// A long program fails because of three of its operations, one of them in a batch.
// These three are left.
func TestShrink(t *testing.T) {
	p := Generate(5, Profile{Ops: 400})
	p.Ops = slices.Insert(p.Ops, 300, Op{Do: "get", In: "a", Key: "the-third", At: "s1"})
	p.Ops = slices.Insert(p.Ops, 200, Op{Do: "batch", Ops: []Op{
		{Do: "put", In: "a", Key: "k1", Item: &Item{}}, {Do: "put", In: "a", Key: "the-second", Item: &Item{Payload: "p", Labels: []string{"a", "b"}}},
	}})
	p.Ops = slices.Insert(p.Ops, 100, Op{Do: "get", In: "a", Key: "the-first"})
	p.Options = Options{NoSync: true, UpdateItems: 3, CacheBytes: 1}
	tried := 0
	short := Shrink(p, time.Now().Add(time.Minute), func(p *Program) bool {
		tried++
		text := p.String()
		first, second, third := strings.Index(text, "the-first"), strings.Index(text, "the-second"), strings.Index(text, "the-third")
		return 0 <= first && first < second && second < third && p.Options.CacheBytes == 1
	})
	want := `{"options":{"cache_bytes":1}}
{"do":"get","in":"a","key":"the-first"}
{"do":"batch","ops":[{"do":"put","in":"a","key":"the-second","item":{}}]}
{"do":"get","in":"a","key":"the-third"}
`
	if short.String() != want {
		t.Errorf("shrunk to\n%swant\n%s", short, want)
	}
	if tried > 2000 {
		t.Errorf("%d programs tried", tried)
	}
}

// Operations after the failed one are not needed.
func TestUpto(t *testing.T) {
	p := &Program{Ops: []Op{{Do: "get"}, {Do: "check"}, {Do: "compact"}}}
	if short := Upto(p, &Failure{Op: 2, Err: errors.New("x")}); len(short.Ops) != 2 || short.Ops[1].Do != "check" {
		t.Errorf("%+v", short)
	}
	if all := Upto(p, &Failure{Op: 4, Do: "end"}); len(all.Ops) != 3 {
		t.Errorf("%+v", all)
	}
}
