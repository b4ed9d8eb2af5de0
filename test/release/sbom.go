package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"net/url"
	"runtime/debug"
	"strings"
	"time"
)

// An spdx is a software bill of materials: SPDX 2.3 as JSON.
type spdx struct {
	Version       string             `json:"spdxVersion"`
	DataLicense   string             `json:"dataLicense"`
	ID            string             `json:"SPDXID"`
	Name          string             `json:"name"`
	Namespace     string             `json:"documentNamespace"`
	Creation      spdxCreation       `json:"creationInfo"`
	Packages      []spdxPackage      `json:"packages"`
	Relationships []spdxRelationship `json:"relationships"`
}

type spdxCreation struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

type spdxPackage struct {
	ID            string         `json:"SPDXID"`
	Name          string         `json:"name"`
	Version       string         `json:"versionInfo"`
	File          string         `json:"packageFileName,omitempty"`
	Download      string         `json:"downloadLocation"`
	FilesAnalyzed bool           `json:"filesAnalyzed"`
	Checksums     []spdxChecksum `json:"checksums,omitempty"`
	SourceInfo    string         `json:"sourceInfo,omitempty"` // sum of the module, as go.sum has it
	Concluded     string         `json:"licenseConcluded"`
	Declared      string         `json:"licenseDeclared"`
	Copyright     string         `json:"copyrightText"`
	External      []spdxExternal `json:"externalRefs"`
}

type spdxChecksum struct {
	Algorithm string `json:"algorithm"`
	Value     string `json:"checksumValue"`
}

type spdxExternal struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type spdxRelationship struct {
	Element string `json:"spdxElementId"`
	Type    string `json:"relationshipType"`
	Related string `json:"relatedSpdxElement"`
}

// unknown is what SPDX calls a value that nobody has looked up. Licences of modules are
// such: only a person can tell them.
const unknown = "NOASSERTION"

// bill returns the bill of materials of the archive for a platform, which has the sum:
// what the built shell says about the modules that are linked into it.
func bill(version string, p platform, sum string, at time.Time, executable []byte) ([]byte, error) {
	info, err := buildinfo.Read(bytes.NewReader(executable))
	if err != nil {
		return nil, fmt.Errorf("the modules of the shell: %w", err)
	}
	const program = "SPDXRef-fddhdb"
	archive := archiveName(version, p)
	doc := spdx{
		Version: "SPDX-2.3", DataLicense: "CC0-1.0", ID: "SPDXRef-DOCUMENT", Name: stem(version, p),
		Namespace: downloadURL(version, stem(version, p)+".spdx.json"),
		Creation: spdxCreation{at.UTC().Format(time.RFC3339),
			[]string{"Organization: fddhdb", "Tool: fddhdb/test/release"}},
		Packages: []spdxPackage{{
			ID: program, Name: info.Main.Path, Version: version, File: archive,
			Download:  downloadURL(version, archive),
			Checksums: []spdxChecksum{{"SHA256", sum}}, Concluded: "Apache-2.0", Declared: "Apache-2.0",
			Copyright: unknown,
			External:  golang(info.Main.Path, version),
		}},
		Relationships: []spdxRelationship{{"SPDXRef-DOCUMENT", "DESCRIBES", program}},
	}
	number, _, _ := strings.Cut(strings.TrimPrefix(info.GoVersion, "go"), " ") // experiments follow
	library := spdxPackage{
		Name: "stdlib", Version: number, Download: "https://go.dev/dl/go" + number + ".src.tar.gz",
		Concluded: "BSD-3-Clause", Declared: "BSD-3-Clause", Copyright: unknown,
		External: golang("stdlib", number),
	}
	for i, p := range append([]spdxPackage{library}, modules(info)...) {
		p.ID = fmt.Sprintf("SPDXRef-module-%d", i)
		doc.Packages = append(doc.Packages, p)
		doc.Relationships = append(doc.Relationships, spdxRelationship{program, "DEPENDS_ON", p.ID})
	}
	b, err := json.MarshalIndent(doc, "", "  ")
	return append(b, '\n'), err
}

// modules returns the modules that are linked into a program.
func modules(info *debug.BuildInfo) (packages []spdxPackage) {
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		p := spdxPackage{
			// wherever modules come from, the sum is theirs
			Name: m.Path, Version: m.Version, Download: unknown,
			Concluded: unknown, Declared: unknown, Copyright: unknown, External: golang(m.Path, m.Version),
		}
		if m.Sum != "" {
			p.SourceInfo = "go.sum: " + m.Sum
		}
		packages = append(packages, p)
	}
	return packages
}

// golang returns the package URL of a module, which has small letters alone.
func golang(path, version string) []spdxExternal {
	return []spdxExternal{{"PACKAGE-MANAGER", "purl",
		"pkg:golang/" + strings.ToLower(path) + "@" + url.QueryEscape(version)}}
}
