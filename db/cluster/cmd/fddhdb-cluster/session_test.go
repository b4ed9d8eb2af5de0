package main

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math/bits"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/nats-io/nats.go"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/clitest"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/source"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/db/shard"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// A whole session: a cluster is made, filled, searched, backed up, changed, and made again from its backups.
func TestSession(t *testing.T) {
	t.Parallel()
	s := build(t, 3, "")
	nodes := []string{"a", "b", "c"}
	for _, n := range nodes {
		s.node(n)
	}
	eventually(t, "the nodes answer", func() bool {
		_, _, code := s.try("", "create", "--shards", "4", "--replicas", "3", "--log-bytes", "64MiB")
		return code == 0
	})
	s.says([]string{"collections"}, "collection")
	s.says([]string{"init", "--collection", "codes", "--codes", "16", "--field", "year:int:index"},
		"created collection codes in cluster main: codes of 16 bits, field year (int, indexed)")
	s.fails(1, []string{"init", "--collection", "codes", "--codes", "16", "--field", "year:int:index"},
		`exists already: collection "codes"`)

	const n = 500
	code := func(i int) []byte { return []byte{byte(i * 7), byte(i >> 3)} }
	codes := make([][]uint8, n)
	for i := range codes {
		codes[i] = code(i)
	}
	clitest.WriteNPY(t, filepath.Join(s.dir, "codes.npy"), codes)
	s.write("keys.txt", lines(n, func(i int) string { return fmt.Sprint("k", i) }))
	s.write("labels.txt", lines(n, func(i int) string { return fmt.Sprint("l", i%5) }))
	s.write("fields.csv", "year:int\n"+lines(n, func(i int) string { return fmt.Sprint(2000 + i%3) }))
	files := []string{"import", "--collection", "codes", "--codes", "codes.npy", "--labels", "labels.txt",
		"--fields",
		"fields.csv"}
	s.fails(1, files, "row 0 has no key", "--number-from 0")
	imported := object[struct {
		Items, Skipped int
		Rate           float64 `json:"items_per_second"`
	}](s, append(files, "--keys", "keys.txt")...)
	if imported.Items != n || imported.Skipped != 0 || imported.Rate <= 0 {
		t.Errorf("%+v", imported)
	}
	if got := s.ok("count", "--collection", "codes"); got != "500\n" {
		t.Error(got)
	}
	if got := object[map[string]int](s, "count", "--collection", "codes", "--where",
		"year = 2001 AND label = 'l1'"); got["count"] != 34 {
		t.Error(got)
	}

	t.Run("search", func(t *testing.T) {
		query := code(17)
		want := 0
		for i := range n {
			if c := code(i); bits.OnesCount8(c[0]^query[0])+bits.OnesCount8(c[1]^query[1]) <= 3 {
				want++
			}
		}
		type answer struct {
			Query any
			Hits  []struct {
				Key      string
				Distance int
				Score    *float64
				Item     *db.Item
			}
			Next    *string
			Total   *int
			Missing []int
			Facets  []db.Facets
		}
		a := object[answer](s, "search", "--collection", "codes", "--code", hex.EncodeToString(query),
			"--radius", "3", "-k",
			"4", "--include", "labels,fields", "--facets", "label")
		if a.Query != hex.EncodeToString(query) || len(a.Hits) != 4 || a.Hits[0].Key != "k17" ||
			a.Hits[0].Distance != 0 || a.Hits[0].Score != nil ||
			a.Hits[0].Item.Labels[0] != "l2" || a.Hits[0].Item.Fields["year"] != int64(2002) ||
			*a.Total != want || a.Next == nil || a.Missing != nil || len(a.Facets) != 1 {
			t.Errorf("%+v, %d in all", a, want)
		}
		b := object[answer](s, "search", "--collection", "codes", "--code", hex.EncodeToString(query),
			"--radius", "3", "-k",
			"1000", "--after", *a.Next)
		if len(b.Hits) != want-4 || b.Next != nil {
			t.Errorf("%d hits behind the first 4 of %d", len(b.Hits), want)
		}
		s.says([]string{"search", "--collection", "codes", "--key", "k17", "--include", "labels,fields"},
			"item k17\n",
			"rank", "distance", "labels", "year", "k17")
		if a := object[answer](s, "search", "--collection", "codes", "--key", "k17", "--exclude-self", "-k",
			"500", "--where",
			"label = 'l2'"); len(a.Hits) != 99 {
			t.Errorf("%d hits", len(a.Hits))
		}
		s.fails(1, []string{"search", "--collection", "codes", "--key", "nosuch"}, "nosuch")
		s.fails(2, []string{"search", "--collection", "codes", "--code", "00"}, "8 bits", "16")
		s.fails(2, []string{"search", "--collection", "codes", "--code", "0000", "--where", "year >"},
			"--where: column 7")
		s.fails(2, []string{"search", "--collection", "codes", "--code", "0000", "--after", "zz"})
		s.fails(2, []string{"search", "--collection", "codes", "--from", "image", "--vector", "1,2"},
			`no modality "image"`)
		s.fails(2, []string{"search", "--collection", "code", "--key", "x"}, "there is codes")
		s.fails(1, []string{"search", "--collection", "codes", "--key", "k17", "--explain"},
			"a cluster does not explain searches")
	})

	t.Run("items", func(t *testing.T) {
		put := object[db.Item](s, "put", "--collection", "codes", "new", "--code", "0102", "--labels", "x",
			"--field",
			"year=1999", "--payload", "hi")
		if put.Key != "new" || put.CodeFrom != "given" || string(put.Payload) != "hi" {
			t.Errorf("%+v", put)
		}
		if got := s.feed("{\"key\":\"s1\",\"code\":\"ffff\"}\n{\"key\":\"s2\",\"code\":\"ffff\"}\n", "import",
			"--collection", "codes", "--items", "-"); !strings.HasPrefix(got, "imported 2 items in") {
			t.Error(got)
		}
		s.write("ones.jsonl", "{\"code\":\"ffff\"}\n{\"code\":\"ffff\"}\n")
		numbered := []string{"import", "--collection", "codes", "--items", "ones.jsonl", "--number-from", "7"}
		s.ok(numbered...)
		s.ok(numbered...)
		s.fails(2, []string{"put", "--collection", "codes", "a", "--code", "01"}, "8 bits")
		s.fails(2, []string{"put", "--collection", "nosuch", "a", "--code", "0102"},
			`no collection "nosuch"`, "codes")
		if got := objects[db.Item](s, "get", "--collection", "codes", "k1",
			"new"); len(got) != 2 || got[0].Key != "k1" ||
			!bytes.Equal(got[0].Code, code(1)) {
			t.Errorf("%+v", got)
		}
		s.says([]string{"get", "--collection", "codes", "new"}, "new\n", "  code      0102, given\n",
			"  field     year = 1999\n")
		out, remarks, exited := s.try("", "get", "--collection", "codes", "k1", "nosuch")
		if !strings.HasPrefix(out, "k1\n") || exited != 1 || !strings.Contains(remarks, "nosuch") {
			t.Error(out, remarks, exited)
		}
		got := object[map[string]int](s, "delete", "--collection", "codes", "new", "s1", "s2", "7", "8",
			"nosuch")
		if got["deleted"] != 6 {
			t.Error(got)
		}
		if got := s.ok("count", "--collection", "codes"); got != "500\n" {
			t.Error(got)
		}
		// Of an import with a bad row nothing is stored, or the good rows.
		s.write("bad.jsonl",
			`{"key":"x1","code":"0101"}`+"\n"+`{"key":"x2","code":"01"}`+"\n"+`{"code":"0101"}`+"\n")
		s.fails(1, []string{"import", "--collection", "codes", "--items", "bad.jsonl"}, "line 2",
			"nothing was stored")
		if got := s.ok("count", "--collection", "codes"); got != "500\n" {
			t.Error(got)
		}
		skipped := object[struct {
			Items, Skipped int
			Reasons        []source.SkippedReason `json:"skipped_reasons"`
		}](s, "import", "--collection", "codes", "--items", "bad.jsonl", "--on-error", "skip")
		if skipped.Items != 1 || skipped.Skipped != 2 || len(skipped.Reasons) != 2 {
			t.Errorf("%+v", skipped)
		}
		s.feed(`{"key":"x1","code":"0202","labels":["l0"]}`, "import", "--collection", "codes", "--items",
			"-")
		s.ok("delete", "--collection", "codes", "x1")
		s.fails(1, []string{"delete", "--collection", "codes", "--where", "year = 2000"}, "delete by keys")
		s.fails(1, []string{"export", "--collection", "codes", "--keys", "k.txt"},
			"a cluster does not list items")
	})

	if got := objects[db.FacetCount](s, "facets", "--collection", "codes", "--by", "label", "--limit",
		"2"); len(got) != 2 ||
		got[0].Value != "l0" || got[0].Items != 100 {
		t.Errorf("%+v", got)
	}
	s.says([]string{"facets", "--collection", "codes", "--by", "year"}, "year  items\n2000    167\n")
	s.says([]string{"collections"}, "codes", "500", "16")
	s.says([]string{"stats", "--collection", "codes"}, "16 bits, of 500 items", "year, int, indexed")
	s.says([]string{"count", "--collection", "codes", "--mode", "jsonl"}, `{"count":500}`)

	t.Run("models", s.models)
	t.Run("care", s.care)

	// Another cluster from the backups.
	for _, name := range nodes {
		if s.nodes[name] != nil {
			s.leave(name)
		}
	}
	s.cluster = "again"
	s.node("e")
	place := filepath.Join(s.dir, "backups")
	s.fails(2, []string{"create", "--from", place, "--shards", "2", "--replicas", "1", "--nodes", "e",
		"--log-bytes", "64MiB"}, "has backups of 4 shards: 2 need a place")
	s.says([]string{"create", "--from", place, "--replicas", "1", "--nodes", "e", "--log-bytes", "64MiB"},
		"created cluster again: 4 shards, each on 1 node of e")
	if got := s.ok("count", "--collection", "codes"); got != "500\n" {
		t.Error(got)
	}
	if got := object[clusterStatus](s, "status"); got.Items != 500+120 || len(got.Shards) != 4 {
		t.Errorf("%+v", got)
	}
	s.cluster = "wide"
	s.says([]string{"create", "--from", place, "--shards", "6", "--backups", filepath.Join(s.dir, "wide"),
		"--replicas", "1", "--nodes", "e", "--log-bytes", "64MiB"},
		"created cluster wide: 6 shards, each on 1 node of e")
	s.cluster = "again"
	s.ok("drop", "--collection", "codes")
	s.fails(2, []string{"drop", "--collection", "codes"}, `no collection "codes"`, "pairs")
}

// models gives a collection models, and changes between their spaces.
func (s *stage) models(t *testing.T) {
	d := dbkit.MustOpen(t, t.TempDir(), nil)
	defer dbkit.MustClose(t, d)
	single, err := d.CreateCollection(t.Context(), "pairs", dbkit.PairsSchema)
	if err != nil {
		t.Fatal(err)
	}
	items := dbkit.Pairs(120, synth.Config{Seed: 5})
	dbkit.PutAll(t, d, single, items)
	var files [2]string
	for i := range files {
		dbkit.MustTrain(t, single, db.TrainOptions{Options: fit.Options{Bits: 16 + 8*i, Anchors: 10, Seed: 1},
			Activate: true})
		var b bytes.Buffer
		if err := single.ExportModel(t.Context(), &b); err != nil {
			t.Fatal(err)
		}
		files[i] = fmt.Sprintf("%d.model", i)
		s.write(files[i], b.String())
	}
	args := []string{"init", "--collection", "pairs"}
	for _, m := range dbkit.PairsSchema.Modalities {
		args = append(args, "--modality", fmt.Sprintf("%s:%d", m.Name, m.Dim))
	}
	for _, f := range dbkit.PairsSchema.Fields {
		args = append(args, "--field", fmt.Sprintf("%s:%s:index", f.Name, f.Type))
	}
	s.ok(args...)
	var b strings.Builder
	for _, it := range items {
		text, err := it.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s\n", text)
	}
	s.feed(b.String(), "import", "--collection", "pairs", "--items", "-")
	s.says([]string{"search", "--collection", "pairs", "--key", items[1].Key, "--from", "image"},
		"similarity", items[1].Key)
	s.says([]string{"models", "--collection", "pairs"}, "no model yet: run fddhdb-cluster train")
	s.says([]string{"index", "--collection", "pairs", "--modality", "image", "--recall", ".9"},
		"indexed 120 vectors of modality image of collection pairs in")
	s.says([]string{"stats", "--collection", "pairs"}, "index of image  120 vectors, recall 0.9")
	s.says([]string{"search", "--collection", "pairs", "--key", items[1].Key, "--from", "image", "--recall",
		"1"},
		items[1].Key)
	x := object[report.VectorIndex](s, "index", "--collection", "pairs", "--modality", "image", "--recall",
		".8")
	if x.Recall != .8 || !x.Complete || x.Entries != 120 {
		t.Errorf("%+v", x)
	}
	s.says([]string{"index", "--collection", "pairs", "--modality", "image", "--drop"},
		"dropped the index of the vectors of image")
	s.fails(2, []string{"index", "--collection", "pairs"}, "--modality NAME is missing")
	s.fails(1, []string{"index", "--collection", "pairs", "--modality", "image", "--drop"},
		"index of the vectors of \"image\"")
	s.fails(1, []string{"import", "--collection", "pairs", "--model", "keys.txt"}, "--model keys.txt")
	s.fails(1, []string{"import", "--collection", "pairs", "--model", "nosuch.model"}, "nosuch.model")
	s.fails(2, []string{"import", "--collection", "pairs", "--model", files[0], "--keys", "keys.txt"},
		"--keys does not go with it")
	s.says([]string{"import", "--collection", "pairs", "--model", files[0]},
		"space 1 of collection pairs: codes of 16 bits, by a model that 120 items", "it is active")
	s.says([]string{"import", "--collection", "pairs", "--model", files[1]}, "space 2", "24 bits",
		"it stands by",
		"fddhdb-cluster activate --collection pairs --space 2")
	vector := strings.Trim(strings.ReplaceAll(fmt.Sprint(items[1].Vectors["text"]), " ", ","), "[]")
	s.says([]string{"search", "--collection", "pairs", "--from", "text", "--vector", vector, "--to",
		"image", "-k", "3"},
		"vector\n", "distance", "score")
	s.fails(2, []string{"search", "--collection", "pairs", "--from", "text", "--vector", "1,2"}, "--vector")
	s.says([]string{"activate", "--collection", "pairs", "--space", "2"},
		"space 2 of collection pairs is the active one now; space 1 stands by\n")
	spaces := objects[report.SpaceInfo](s, "models", "--collection", "pairs")
	if len(spaces) != 2 || spaces[1].State != "active" || spaces[0].State != "standby" ||
		spaces[1].Items != 120 || spaces[1].Bits != 24 {
		t.Errorf("%+v", spaces)
	}
	s.fails(1, []string{"drop", "--collection", "pairs", "--space", "2"}, "active")
	s.says([]string{"train", "--collection", "pairs", "--bits", "32", "--anchors", "10", "--activate"},
		"trained collection pairs on 120 labelled items", "space 3, revision 1", "it is active")
	s.says([]string{"update", "--collection", "pairs"}, "space 3 of collection pairs is at revision 2 now",
		"labelled items have taught")
	s.says([]string{"update", "--collection", "pairs", "--space", "2", "--grow-labels"},
		"space 2 of collection pairs is at revision 2")
	s.fails(1, []string{"update", "--collection", "pairs", "--teacher", "self"}, "let labels teach")
	s.fails(2, []string{"update", "--collection", "pairs", "--space", "9"}, "--space 9")
	s.ok("export", "--collection", "pairs", "--model", "again.model", "--space", "2")
	s.fails(2, []string{"update", "--collection", "codes"}, "bring their codes")
	s.fails(2, []string{"update", "--collection", "nosuch"}, "no collection")
	s.fails(1, []string{"train", "--collection", "codes"}, "codes")
	s.fails(2, []string{"train", "--collection", "pairs", "--bits", "12"}, "--bits 12")
	s.ok("drop", "--collection", "pairs", "--space", "1")
	s.fails(2, []string{"drop", "--collection", "pairs", "--space", "1"}, "--space 1")
	s.fails(2, []string{"activate", "--collection", "pairs"}, "fddhdb-cluster models lists them")
	s.fails(2, []string{"activate", "--collection", "nosuch", "--space", "1"}, "no collection")
}

// care backs up, moves shards and drains a node.
func (s *stage) care(t *testing.T) {
	if got := object[clusterStatus](s, "status"); got.Items != 620 || len(got.Shards) != 4 ||
		len(got.Nodes) != 3 || len(got.Shards[0].Replicas) != 3 ||
		got.Shards[0].Log.Leader == "" || got.Shards[3].Replicas[0].Problem != "" || !got.Nodes[0].Answers {
		t.Errorf("%+v", got)
	}
	backed := object[struct {
		Trimmed bool
		Shards  []struct {
			Shard  int
			Backup string
			Items  int
		}
	}](s, "backup", "--trim", "--keep", "1")
	items := 0
	for _, b := range backed.Shards {
		items += b.Items
	}
	if !backed.Trimmed || len(backed.Shards) != 4 || items != 620 {
		t.Errorf("%+v", backed)
	}
	if got := object[clusterStatus](s, "status"); got.Shards[0].Log.First < got.Shards[0].Log.Last {
		t.Errorf("the log was not trimmed: %+v", got.Shards[0].Log)
	}
	if out := s.ok("compare", "1"); !strings.HasPrefix(out, "shard 1: equal on ") {
		t.Error(out)
	}
	if got := objects[cluster.Comparison](s, "compare"); len(got) != 4 || len(got[2].Nodes) != 3 ||
		len(got[2].Differences) > 0 {
		t.Errorf("%+v", got)
	}
	if out := s.ok("rebuild", "2", "--node", "b"); out != "made shard 2 on node b again\n" {
		t.Error(out)
	}
	s.fails(1, []string{"rebuild", "2", "--node", "x"}, "not found: shard 2 on node x")
	s.fails(2, []string{"rebuild", "2"}, "--node")
	s.fails(2, []string{"compare", "7"}, "there are 0 to 3")
	s.fails(1, []string{"skip", "0"}, "goes on")
	s.fails(1, []string{"drain", "a"}, "no node can take shard 0")
	s.fails(1, []string{"move", "0", "--from", "a", "--to", "d"}, "no such node answers")
	s.node("d") // begins with a backup
	eventually(t, "node d answers", func() bool {
		out := s.ok("status")
		return strings.Contains(out, "node d has no shard")
	})
	s.says([]string{"move", "0", "--from", "a", "--to", "d"}, "moved shard 0 from a to d")
	s.fails(1, []string{"move", "0", "--from", "a", "--to", "d"}, "node a does not have shard 0")
	s.fails(2, []string{"move", "9", "--from", "a", "--to", "d"}, "0 to 3")
	s.says([]string{"drain", "a"}, "moved 3 shards from a")
	s.leave("a")
	s.leave("b") // the others have its shards
	out := s.ok("status")
	if !strings.Contains(out, "node b does not answer: it has shards 0, 1, 2, 3") ||
		strings.Contains(out, "node a") {
		t.Error(out)
	}
	if got := s.ok("count", "--collection", "codes"); got != "500\n" {
		t.Error(got)
	}
	if all, err := os.ReadDir(filepath.Join(s.dir, "backups")); err != nil || len(all) < 8 {
		t.Error(all, err)
	}
}

// A shard that no node answers for fails a search, or is missing from a partial answer.
func TestPartial(t *testing.T) {
	t.Parallel()
	s := build(t, 1, "")
	s.node("a")
	s.node("b")
	s.fails(1, []string{"status"}, "no cluster main", "create")
	eventually(t, "the nodes answer", func() bool {
		_, _, code := s.try("", "create", "--shards", "2", "--replicas", "1", "--servers-per-log", "1",
			"--nodes", "a,b", "--log-bytes", "64MiB")
		return code == 0
	})
	s.fails(1, []string{"create", "--shards", "2", "--nodes", "a,b"}, "a cluster main already")
	s.fails(1, []string{"create", "--shards", "2", "--cluster", "other"}, "0 nodes of cluster other run")
	s.fails(1, []string{"create", "--shards", "2", "--cluster", "other", "--nodes", "a,b"},
		"--servers-per-log 1")
	s.ok("init", "--collection", "codes", "--codes", "8")
	s.feed(lines(50, func(i int) string { return fmt.Sprintf(`{"key":"%d","code":"%02x"}`, i, i) }), "import",
		"--collection", "codes", "--items", "-")
	s.leave("b")
	search := []string{"search", "--collection", "codes", "--code", "00", "-k", "50", "--timeout", "500ms"}
	s.fails(1, search, "shard 1, on nodes b", "fddhdb-cluster status")
	out, remarks, code := s.try("", append(search, "--partial", "--json")...)
	if code != 0 || !strings.Contains(out, `"hits":[{"key":"0"`) ||
		remarks != "fddhdb-cluster: without shard 1, of which no node answers\n" {
		t.Error(code, out, remarks)
	}
	key := 0
	for shard.Of(fmt.Sprint(key), 2) != 1 {
		key++
	}
	s.fails(1, []string{"put", "--collection", "codes", "--timeout", "500ms",
		fmt.Sprint(key), "--code", "00"}, "not known", "made again")
}

// What credentials do not allow ends a verb at once, and says so.
func TestRefused(t *testing.T) {
	t.Parallel()
	s := build(t, 1, `authorization { users: [
		{user: admin, password: secret}
		{user: reader, password: r, permissions: {publish: ["fddhdb.main.read.*", "fddhdb.main.nodes",
			"$JS.API.>"], subscribe: ["_INBOX.>", "fddhdb.main.changed"]}}
	] }`, nats.UserInfo("admin", "secret"))
	as := func(user string) { s.servers = strings.Replace(s.plain, "nats://", "nats://"+user+"@", 1) }
	as("admin:secret")
	s.node("a")
	eventually(t, "the node answers", func() bool {
		_, _, code := s.try("", "create", "--shards", "1", "--replicas", "1", "--servers-per-log", "1",
			"--log-bytes", "64MiB")
		return code == 0
	})
	s.ok("init", "--collection", "codes", "--codes", "8")
	as("reader:r")
	if got := s.ok("count", "--collection", "codes"); got != "0\n" {
		t.Error(got)
	}
	s.fails(1, []string{"backup"}, "do not let these credentials publish", "fddhdb.main.admin.a")
	s.fails(1, []string{"put", "--collection", "codes", "x", "--code", "00"},
		"do not let these credentials publish", "fddhdb.main.log.0")
	as("reader:wrong")
	s.fails(1, []string{"status"}, "refuse these credentials")
	as("admin:secret")
}
