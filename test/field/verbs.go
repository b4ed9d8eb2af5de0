//go:build linux

package main

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A verb is a command line to try. Its folder has a database x.db, inputs in in/ and
// backups in repo/.
type verb struct {
	args  string // words separated by blanks
	on    string // the database that x.db is a copy of; empty: main
	stdin string

	writes bool   // writes into x.db
	opens  bool   // only reads x.db
	repo   bool   // works on repo/
	makes  string // the database that it makes
	prints bool   // prints its results; otherwise it writes them to a file
	serves bool   // runs until a signal ends it
	slow   bool   // takes a second or more
	parts  bool   // has several effects, and an interrupt may leave some of them
}

func (v *verb) words() []string { return strings.Fields(v.args) }

// name returns the first word.
func (v *verb) name() string { return v.words()[0] }

// database returns the name of the database that x.db is a copy of.
func (v *verb) database() string {
	if v.on == "" {
		return "main"
	}
	return v.on
}

// call returns the verb as a call.
func (v *verb) call() call { return call{args: v.words(), stdin: v.stdin} }

// These options leave nothing for training to choose: choosing takes most of its time.
const (
	quickly = " --fusion sum --map image=rbf --map text=rbf --features image=raw --features text=raw --width image=1 --width text=1 --gamma image=.01 --gamma text=.01"
	tagged  = quickly + " --map tags=linear --features tags=raw --gamma tags=.01"
)

// assistant returns what an assistant writes that calls a tool.
func assistant(tool, arguments string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"field","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + arguments + `}}
`
}

// verbs hold all that a user types, at least once each, in every form that stores,
// reads or prints something different. Every verb of fddhdb help has to be among them.
var verbs = []verb{
	// These write.
	{args: "init x.db --collection further --modality image:8 --field year:int:index", writes: true,
		prints: true},
	{args: "init new.db --codes 32", makes: "new.db", prints: true},
	{args: "init new.db --modality image:8 --modality text:8 --shared --metric image=l2", makes: "new.db",
		prints: true},
	{args: "import x.db --vectors image=in/more_image.npy --vectors text=in/more_text.npy --labels in/more_labels.txt --keys in/more_keys.txt", writes: true, prints: true},
	{args: "import x.db --merge --keys in/some_keys.txt --vectors image=in/more_image.npy", writes: true,
		prints: true},
	{args: "import x.db --collection codes --codes in/many_codes.npy", writes: true, prints: true,
		slow: true},
	{args: "import new.db --init --items in/items.jsonl", makes: "new.db", prints: true},
	{args: "import new.db --init --items in/items.jsonl --index all", makes: "new.db", prints: true},
	{args: "import new.db --init --items in/table.csv --label-column tags", makes: "new.db", prints: true},
	{args: "import new.db --init --pictures in/pictures", makes: "new.db", prints: true},
	{args: "import new.db --init --texts in/texts.txt", makes: "new.db", prints: true},
	{args: "import x.db --items - --ignore-unknown", stdin: "id,image,year\ns1,\"[1,2,3,4,5,6,7,8]\",2001\n",
		writes: true, prints: true},
	{args: "put x.db k1 --labels 1 --vector image=1,0,0,1,0,1,0,0 --field year=2001 --field title=one --payload some", writes: true, prints: true},
	{args: "put x.db k1 --labels 1 --payload some", on: "anchors", writes: true, prints: true},
	{args: "put x.db k1 --labels 1", on: "killed", writes: true, prints: true},
	{args: "alter x.db --add-field note:string:index --add-modality audio:4", writes: true, prints: true},
	{args: "alter x.db --index title", writes: true, prints: true},
	{args: "alter x.db --metric image=l2 --metric text=dot", writes: true, prints: true},
	{args: "encoder x.db --set image=in/image.sh --set text=in/text.sh", writes: true, prints: true},
	{args: "alter x.db --rename-label 1=one", writes: true, prints: true},
	{args: "delete x.db 3 5 large", writes: true, prints: true},
	{args: "delete x.db --where year<2003", writes: true, prints: true},
	{args: "train x.db --bits 16 --anchors 20" + tagged, writes: true, prints: true},
	{args: "train x.db --bits 16 --anchors 20 --activate" + tagged, writes: true, prints: true},
	{args: "train x.db --method cca-itq --bits 16", writes: true, prints: true},
	{args: "train x.db --bits 32 --anchors 800 --activate" + quickly, on: "anchors", writes: true,
		prints: true, slow: true},
	{args: "update x.db --teacher labels", writes: true, prints: true},
	{args: "update x.db --teacher labels", on: "anchors", writes: true, prints: true, slow: true},
	{args: "reindex x.db", writes: true, prints: true},
	{args: "index x.db --modality image", writes: true, prints: true},
	{args: "reindex x.db", on: "anchors", writes: true, prints: true, slow: true},
	{args: "activate x.db --space 2", writes: true, prints: true},
	{args: "rollback x.db --revision 1", writes: true, prints: true},
	{args: "drop x.db --space 2", writes: true, prints: true},
	{args: "drop x.db --collection codes", writes: true, prints: true},
	{args: "compact x.db", writes: true, prints: true},
	{args: "compact x.db", on: "anchors", writes: true, prints: true, slow: true},
	{args: "repair x.db", writes: true, prints: true},
	{args: "repair x.db", on: "anchors", writes: true, prints: true, slow: true},
	{args: "repair x.db", on: "killed", writes: true, prints: true},
	{args: "verify x.db --acknowledge", on: "killed", writes: true, prints: true},
	{args: "backup x.db repo", writes: true, repo: true, prints: true},
	{args: "backup x.db repo --index-only --collection main", on: "anchors", writes: true, repo: true,
		prints: true, slow: true},
	{args: "restore repo new.db", repo: true, makes: "new.db", prints: true},
	{args: "prune repo --keep 1", repo: true, prints: true},

	// These only read.
	{args: "facets x.db --by label", opens: true, prints: true},
	{args: "facets x.db --by year --where has(label) --json", opens: true, prints: true},
	{args: "get x.db 0 1 large --json", opens: true, prints: true},
	{args: "get x.db 0 1", on: "anchors", opens: true, prints: true},
	{args: "scan x.db --json", opens: true, prints: true},
	{args: "scan x.db --collection codes", opens: true, prints: true},
	{args: "scan x.db --json", on: "killed", opens: true, prints: true},
	{args: "scan x.db", on: "anchors", opens: true, prints: true},
	{args: "count x.db", opens: true, prints: true},
	{args: "count x.db --where year>=2010", opens: true, prints: true},
	{args: "search x.db --from image --to text --key 1 --json", opens: true, prints: true},
	{args: "search x.db --from text --key 1 --rerank projection --min-similarity 0 --include labels,fields",
		opens: true, prints: true},
	{args: "search x.db --from text --key 1 --include labels,fields,payload,vectors --json", opens: true,
		prints: true},
	{args: "search x.db --from image --vectors - -k 3", stdin: "1,0,0,1,0,1,0,0\n0:1,3:2\n", opens: true,
		prints: true},
	{args: "search x.db --from image --vector 1,0,0,1,0,1,0,0", opens: true, prints: true},
	{args: "search x.db --from text --key 1 --facets label,year", opens: true, prints: true},
	{args: "search x.db --collection codes --codes in/codes.npy -k 3", opens: true, prints: true},
	{args: "search x.db --from image --to text --vectors in/wide_image.npy -k 3", on: "anchors", opens: true,
		prints: true},
	{args: "encoder x.db --json --collection codes", opens: true},
	{args: "encode x.db --from image --vectors in/more_image.npy --out out.npy", opens: true, prints: true},
	{args: "eval x.db --vectors image=in/more_image.npy --labels in/more_labels.txt", opens: true,
		prints: true},
	{args: "export x.db --items out.jsonl", opens: true},
	{args: "export x.db --items out.parquet", opens: true},
	{args: "export x.db --codes out.npy --keys out.txt --labels out2.npy --label-names out2.txt",
		opens: true},
	{args: "export x.db --vectors image=out.npy --keys out.txt", on: "anchors", opens: true},
	{args: "bench x.db --collection codes --codes in/codes.npy --queries 5 --radius 2", opens: true,
		prints: true},
	{args: "bench x.db --vectors in/more_text.npy --from text --queries 5 -k 3", opens: true, prints: true},
	{args: "stats x.db --json", opens: true, prints: true},
	{args: "collections x.db", opens: true, prints: true},
	{args: "models x.db", opens: true, prints: true},
	{args: "verify x.db", opens: true, prints: true},
	{args: "verify x.db --deep", opens: true, prints: true},
	{args: "verify x.db --deep", on: "anchors", opens: true, prints: true, slow: true},
	{args: "verify x.db", on: "anchors", opens: true, prints: true},
	{args: "verify repo", repo: true, prints: true},
	{args: "backups repo", repo: true, prints: true},
	{args: "explore x.db", opens: true, serves: true},
	{args: "serve x.db --address 127.0.0.1:0 --mcp", opens: true, serves: true},
	{args: "mcp x.db", stdin: assistant("count_items", `{}`), opens: true, prints: true},
	{args: "mcp x.db --write", stdin: assistant("put_items", `{"items":[{"key":"k3","text":"x"}]}`),
		writes: true, prints: true},
	{args: "x.db -c count -c collections", writes: true, prints: true},
	{args: "x.db", stdin: "encoder --set image=in/image.sh\nsearch --text red -k 2\n", writes: true,
		prints: true, parts: true},
	{args: "x.db", stdin: "put k1 --labels 2\nput k2 --labels 3\ndelete 4\ncount\n", writes: true,
		prints: true, parts: true},
	{args: "python", prints: true},
	{args: "token tokens --name shop --scope write", prints: true},
	{args: "completion bash", prints: true},
	{args: "help", prints: true},
	{args: "version", prints: true},
}

// verbOf returns the first verb that begins with these words.
func verbOf(words string) verb {
	i := slices.IndexFunc(verbs, func(v verb) bool { return strings.HasPrefix(v.args, words) })
	return verbs[i]
}

// some returns the verbs for which f is true.
func some(f func(v *verb) bool) []verb {
	return slices.DeleteFunc(slices.Clone(verbs), func(v verb) bool { return !f(&v) })
}

// everyVerb runs all verbs under good conditions. Their answers and times are what the
// other scenes compare with.
func everyVerb(ctx context.Context, t *trial) error {
	t.until = time.Time{} // no limit: the other scenes need all of them
	t.each(ctx, 1, func(ctx context.Context, a *attempt) error {
		r, err := a.do(ctx, call{args: []string{"help"}})
		if err != nil {
			return err
		}
		for _, m := range regexp.MustCompile(`(?m)^  ([a-z]+)  +[A-Z]`).FindAllStringSubmatch(r.out, -1) {
			if m[1] == "health" { // it needs a server; TestHealth has it
				continue
			}
			if !slices.ContainsFunc(verbs, func(v verb) bool { return v.name() == m[1] }) {
				a.found("the verb %s is not tried: name it in verbs.go", m[1])
			}
		}
		return nil
	})
	t.each(ctx, len(verbs), func(ctx context.Context, a *attempt) error {
		v := verbs[a.number]
		if v.serves {
			return nil
		}
		base, err := t.f.stocks.baseline(ctx, a, v)
		if err != nil {
			return err
		}
		if base.code != 0 {
			a.found("exit code %d where nothing is wrong: %s", base.code, brief(a.said))
		}
		return nil
	})
	return nil
}

// shuffled returns the numbers below n in an order that follows from the seed.
func (t *trial) shuffled(n int) []int { return t.rand(-1).Perm(n) }

// String tells a verb from all others: two scripts of the shell differ only by their input.
func (v *verb) String() string {
	if v.stdin == "" {
		return fmt.Sprintf("%s (%s)", v.args, v.database())
	}
	return fmt.Sprintf("%s < %.40q (%s)", v.args, v.stdin, v.database())
}
