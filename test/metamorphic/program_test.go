package metamorphic

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// Programs vary every option of a database, save those that are about how it is opened or
// about what hears of it, and the database is opened with them.
func TestEveryOptionIsTried(t *testing.T) {
	left := []string{"MustExist", "UpdateInterval", "ReserveBytes", "Logger", "EventListener", "Tracer", "FS"}
	var options Options
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
		if again := Generate(seed, Profile{Ops: 300, Lanes: seed%2 == 0, Bulk: true}).String(); again != text {
			t.Fatalf("seed %d gives another program", seed)
		}
		read, err := Read(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if read.String() != text {
			t.Errorf("seed %d: read again, the program is another one", seed)
		}
	}
	for _, text := range []string{"{}", `{"options":{}}` + "\n{", `{"options":{}}` + "\n" + `{"did":"put"}`} {
		if _, err := Read(strings.NewReader(text)); err == nil {
			t.Errorf("%q is a program", text)
		}
	}
}
