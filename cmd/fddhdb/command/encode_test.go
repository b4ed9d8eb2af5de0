package command

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/clitest"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/source"
)

// The fused code equals the code of an unlabelled item.
func TestEncodeIsTheStoredCode(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	f := newFixture(t, 1100, true) // more than one block of rows
	out := f.path("codes.npy")
	var got map[string]int
	mustJSON(t, &got, "encode", f.db, "--vectors", "image="+f.image, "--vectors", "text="+f.text, "--out",
		out)
	if diff := cmp.Diff(map[string]int{"codes": 1100, "bits": 16}, got); diff != "" {
		t.Error(diff)
	}
	must(t, "init", f.db, "--collection", "given", "--codes", "16")
	must(t, "import", f.db, "--collection", "given", "--codes", out)
	for _, row := range []string{"0", "1023", "1024", "1099"} {
		var given, stored itemCode
		mustJSON(t, &given, "get", f.db, row, "--collection", "given")
		mustJSON(t, &stored, "put", f.db, "copy", "--vector", "image="+vectorOf(t, f, row, "image"),
			"--vector", "text="+vectorOf(t, f, row, "text"))
		if stored.Code != given.Code || stored.CodeFrom != "fused" {
			t.Errorf("row %s: %s stored as %s, %s encoded", row, stored.Code, stored.CodeFrom, given.Code)
		}
	}
}

// vectorOf returns a row of the files of a fixture in the form for put.
func vectorOf(t *testing.T, f fixture, row, modality string) string {
	t.Helper()
	file := map[string]string{"image": f.image, "text": f.text}[modality]
	s := clitest.Must(source.OpenVectors(modality, file))(t)
	defer s.Close()
	rows, _, err := s.All()
	clitest.Check(t, err)
	i := clitest.Must(strconv.Atoi(row))(t)
	var numbers []string
	for _, x := range rows[i] {
		numbers = append(numbers, strconv.FormatFloat(float64(x), 'g', -1, 32))
	}
	return strings.Join(numbers, ",")
}
