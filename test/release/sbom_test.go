package main

import (
	"encoding/json"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

// A bill of materials has what SPDX 2.3 asks for, and refers to nothing that it lacks.
func TestBill(t *testing.T) {
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	executable, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	p := platform{"linux", "arm64"}
	b, err := bill("v1.2.3", p, strings.Repeat("a", 64), debTime, executable)
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{
		"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
		"name":              "fddhdb-1.2.3-linux-arm64",
		"documentNamespace": "https://github.com/fddhdb/fddhdb/releases/download/v1.2.3/fddhdb-1.2.3-linux-arm64.spdx.json",
	} {
		if doc[key] != want {
			t.Errorf("%s is %v", key, doc[key])
		}
	}
	if created := doc["creationInfo"].(map[string]any)["created"]; created != "2026-03-04T05:06:08Z" {
		t.Errorf("created %v", created)
	}
	ids := []string{"SPDXRef-DOCUMENT"}
	var names []string
	for _, p := range doc["packages"].([]any) {
		p := p.(map[string]any)
		ids = append(ids, p["SPDXID"].(string))
		names = append(names, p["name"].(string)+" "+p["versionInfo"].(string))
		for _, key := range []string{"downloadLocation", "licenseConcluded", "licenseDeclared",
			"copyrightText"} {
			if p[key] == "" || p[key] == nil {
				t.Errorf("%s has no %s", p["name"], key)
			}
		}
	}
	if want := "stdlib " + strings.TrimPrefix(strings.Fields(runtime.Version())[0], "go"); names[0] != "github.com/fddhdb/fddhdb/test v1.2.3" || names[1] != want {
		t.Errorf("packages %q, want %s", names, want)
	}
	for _, r := range doc["relationships"].([]any) {
		r := r.(map[string]any)
		if !slices.Contains(ids, r["spdxElementId"].(string)) ||
			!slices.Contains(ids, r["relatedSpdxElement"].(string)) {
			t.Errorf("%v refers to what is not there", r)
		}
	}
	if _, err := bill("v1.2.3", p, "", debTime, []byte("no program")); err == nil {
		t.Error("a bill of no program")
	}
}

// Modules are named as package URLs name them, with the sums of go.sum.
func TestModules(t *testing.T) {
	found := modules(&debug.BuildInfo{Deps: []*debug.Module{
		{Path: "github.com/RoaringBitmap/roaring/v2", Version: "v2.30.0", Sum: "h1:abc="},
		{Path: "example.com/old", Version: "v1.0.0", Replace: &debug.Module{Path: "example.com/new",
			Version: "v1.1.0+incompatible", Sum: "h1:def="}},
	}})
	first, second := found[0], found[1]
	if first.Download != unknown || first.SourceInfo != "go.sum: h1:abc=" ||
		first.External[0].Locator != "pkg:golang/github.com/roaringbitmap/roaring/v2@v2.30.0" ||
		first.Declared != unknown {
		t.Errorf("%+v", first)
	}
	if second.Name != "example.com/new" || second.Version != "v1.1.0+incompatible" ||
		second.External[0].Locator != "pkg:golang/example.com/new@v1.1.0%2Bincompatible" {
		t.Errorf("%+v", second)
	}
}
