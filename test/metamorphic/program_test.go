package metamorphic

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/test/metamorphic/program"
)

// Programs vary every option of a database, save those that are about how it is opened or
// about what hears of it, and the database is opened with them.
func TestEveryOptionIsTried(t *testing.T) {
	left := []string{"MustExist", "UpdateInterval", "NoResume", "ReserveBytes", "Logger", "EventListener",
		"FS"}
	var options program.Options
	for seed := range uint64(200) {
		generated := reflect.ValueOf(Generate(seed, Profile{Ops: 1}).Options)
		for field, value := range generated.Fields() {
			if !value.IsZero() {
				reflect.ValueOf(&options).Elem().FieldByName(field.Name).Set(value)
			}
		}
	}
	options.ReadOnly = true // operations open it so
	_, opened := (&history{options: options}).dbOptions("db")
	for field, value := range reflect.ValueOf(*opened).Fields() {
		if value.IsZero() != slices.Contains(left, field.Name) {
			t.Errorf("option %s: programs vary it: %v", field.Name, !value.IsZero())
		}
	}
}

// The text of a program gives the same program again, and so does its seed.
func TestProgramsAreTheirText(t *testing.T) {
	for seed := range uint64(20) {
		p := Generate(seed, Profile{Ops: 300, Lanes: seed%2 == 0, Bulk: true})
		text := p.String()
		again := Generate(seed, Profile{Ops: 300, Lanes: seed%2 == 0, Bulk: true}).String()
		if again != text {
			t.Fatalf("seed %d gives another program", seed)
		}
		read, err := program.Read(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if read.String() != text {
			t.Errorf("seed %d: read again, the program is another one", seed)
		}
	}
	for _, text := range []string{"{}", `{"options":{}}` + "\n{", `{"options":{}}` + "\n" + `{"did":"put"}`} {
		if _, err := program.Read(strings.NewReader(text)); err == nil {
			t.Errorf("%q is a program", text)
		}
	}
}

// A long program fails because of three of its operations, one of them in a batch.
// These three are left.
func TestShrink(t *testing.T) {
	p := Generate(5, Profile{Ops: 400})
	p.Ops = slices.Insert(p.Ops, 300, program.Op{Do: "get", In: "a", Key: "the-third", At: "s1"})
	p.Ops = slices.Insert(p.Ops, 200, program.Op{Do: "batch", Ops: []program.Op{
		{Do: "put", In: "a", Key: "k1", Item: &program.Item{}},
		{Do: "put", In: "a", Key: "the-second",
			Item: &program.Item{Payload: "p", Labels: []string{"a", "b"}}},
	}})
	p.Ops = slices.Insert(p.Ops, 100, program.Op{Do: "get", In: "a", Key: "the-first"})
	p.Options = program.Options{NoSync: true, UpdateItems: 3, CacheBytes: 1}
	tried := 0
	short := program.Shrink(p, time.Now().Add(time.Minute), func(p *program.Program) bool {
		tried++
		text := p.String()
		first, second, third := strings.Index(text, "the-first"), strings.Index(text, "the-second"),
			strings.Index(text, "the-third")
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
	p := &program.Program{Ops: []program.Op{{Do: "get"}, {Do: "check"}, {Do: "compact"}}}
	if short := Upto(p, &Failure{Op: 2, Err: errors.New("x")}); len(short.Ops) != 2 ||
		short.Ops[1].Do != "check" {
		t.Errorf("%+v", short)
	}
	if all := Upto(p, &Failure{Op: 4, Do: "end"}); len(all.Ops) != 3 {
		t.Errorf("%+v", all)
	}
}
