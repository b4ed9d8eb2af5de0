package files

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
)

func TestReadLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	for _, c := range []struct {
		text string
		want []string
	}{
		{"", nil},
		{"\n", []string{""}},
		{"a\nb\n", []string{"a", "b"}},
		{"a\nb", []string{"a", "b"}},
		{"a\r\nb\r\n", []string{"a", "b"}},
		{"a\n\nb\n\n", []string{"a", "", "b", ""}},
		{" a b \n,\n", []string{" a b ", ","}},
		{"\ufeffkey\n\ufeffkey\n", []string{"key", "\ufeffkey"}},
		{"Straße\n日本\n", []string{"Straße", "日本"}},
		{strings.Repeat("x", 1<<20) + "\r\ny\n", []string{strings.Repeat("x", 1<<20), "y"}},
		{"y\n" + strings.Repeat("x", 1<<20), []string{"y", strings.Repeat("x", 1<<20)}},
	} {
		check(t, os.WriteFile(path, []byte(c.text), 0o666))
		got, err := ReadLines(path)
		if err != nil || fmt.Sprintf("%q", got) != fmt.Sprintf("%q", c.want) {
			t.Errorf("%.40q: got %.40q, %v", c.text, got, err)
		}
	}
}

func TestReadLinesRejects(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"a\nb\n\xc3\x28\n", "keys: line 3: is not UTF-8 text: save the file in that encoding"},
		{"\xff\xfea\x00\n\x00", "keys: line 1: is not UTF-8 text"},
		{"a\n" + strings.Repeat("x", 1<<20+1) + "\n",
			"keys: line 2: is longer than 1,048,576 bytes: is this a text file?"},
		{"a\n" + strings.Repeat("x", 1<<21), "keys: line 2: is longer than 1,048,576 bytes"},
	} {
		_, err := readLines("keys", strings.NewReader(c.text))
		wantError(t, err, c.want)
	}
	broken := errors.New("the disk is broken")
	_, err := readLines("keys", io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(broken)))
	if !errors.Is(err, broken) {
		t.Errorf("%v for a broken disk", err)
	}
}
