package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// service starts a service of embeddings, whose address is then in $SERVICE. Its vectors are the numbers of
// the letters r, g and b of a text, or of a file. It wants the token "secret", and has the models "colours"
// and "mixed", which has the letters in another order.
func service(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: service")
	}
	embed := func(model, text string) []int {
		x := []int{strings.Count(text, "r"), strings.Count(text, "g"), strings.Count(text, "b")}
		if model == "mixed" {
			x[0], x[1], x[2] = x[2], x[0], x[1]
		}
		return x
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Model string
			Input []string
		}
		if r.URL.Path == "/predict" {
			text := r.FormValue("text")
			if f, _, err := r.FormFile("image"); err == nil {
				b, _ := io.ReadAll(f)
				text = string(b)
			}
			b, _ := json.Marshal(embed("", text)) // it cannot fail
			fmt.Fprintf(w, `{"clip":%q}`, b)
			return
		}
		switch err := json.NewDecoder(r.Body).Decode(&in); {
		case r.Header.Get("Authorization") != "Bearer secret":
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"error":{"message":"this token is not known"}}`)
			return
		case err != nil || in.Model != "colours" && in.Model != "mixed":
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprintf(w, `{"error":"model '%s' not found"}`, in.Model)
			return
		}
		data := []any{}
		for i, text := range in.Input {
			data = append(data, map[string]any{"index": i, "embedding": embed(in.Model, text)})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": data})
	}))
	ts.Defer(s.Close)
	ts.Setenv("SERVICE", s.URL)
}

// tensor writes a file of safetensors with one matrix.
func tensor(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 4 {
		ts.Fatalf("usage: tensor FILE NAME COLUMNS NUMBER...")
	}
	columns, err := strconv.Atoi(args[2])
	ts.Check(err)
	var data []byte
	for _, s := range args[3:] {
		x, err := strconv.ParseFloat(s, 32)
		ts.Check(err)
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(x)))
	}
	header := fmt.Sprintf(`{%q:{"dtype":"F32","shape":[%d,%d],"data_offsets":[0,%d]}}`, args[1],
		len(data)/4/columns, columns, len(data))
	b := append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), append(b, data...), 0o666))
}
