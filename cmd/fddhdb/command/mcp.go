package command

import (
	"context"
	"errors"
	"runtime/debug"
	"sync"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/ingest"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/mcp"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/run"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/server"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db/client"
)

func mcpCommand(e *run.Env) *cobra.Command {
	v := e.NewVerb(run.GroupServe, "mcp DIR", "Let an assistant use a database", `
		Mcp gives an assistant, such as a program with a language model, the tools of a
		database, by the Model Context Protocol: it reads requests from stdin and answers on
		stdout, until stdin ends. The assistant starts it; docs/MCP.md says how.

		The tools list collections and items, search by words, item, code and vector, get an
		item, count, and count by label and field. With --write there are put_items and
		delete_items as well; without it nothing is changed. Answers have at most 8 KiB unless
		the assistant asks for more.

		Words become vectors by the encoders of texts that the collections have and you have
		set or trusted (see encoder).

		Several assistants and verbs can use one database: the first process owns the folder,
		the others work through it, and when it ends another one goes on. serve --mcp does the
		same by HTTP.`, `
		fddhdb mcp photos.db
		fddhdb mcp notes.db --write --collection notes
		fddhdb mcp https://photos.example.org:7070/photos --token-file token`)
	v.OnAnyCollection("let the assistant use the collection `NAME` alone")
	var write bool
	v.Flags.BoolVar(&write, "write", false, "let the assistant store and delete items")
	return v.Does(func() error {
		if v.Session != nil {
			return exit.Usagef("mcp runs outside of the shell: fddhdb mcp %s", v.Dir)
		}
		open := v.Share
		if write {
			open = v.Change
		}
		return open(func() error { return assist(v, write) })
	})
}

// assist answers an assistant until stdin or the context ends.
func assist(v *run.Verb, write bool) error {
	words, closeWords, err := words(v)
	if err != nil {
		return err
	}
	defer closeWords()
	defer context.AfterFunc(v.Ctx, closeWords)() // a call that waits for a program ends, too
	if v.Signals != nil {
		v.Signals.Serving(server.Grace, func() {})
	}
	out := &replies{to: v.Printer}
	name, err := nameOf(v.Dir)
	if err != nil {
		name = v.Dir
	}
	opt := mcp.Options{Name: name, Version: version(debug.ReadBuildInfo()).Version, Write: write,
		Words: words, Report: out.report}
	if v.Collection != nil {
		opt.Collection = v.Collection.Name()
	}
	s, err := mcp.New(v.DB, opt)
	if err != nil {
		return err
	}
	return s.Run(v.Ctx, v.Stdin, out)
}

// replies are the answers to an assistant, on stdout. Faults go to stderr. It is safe for concurrent use.
type replies struct {
	mu sync.Mutex
	to *term.Printer
}

func (r *replies) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n, err := r.to.Stdout.Write(b)
	return n, errors.Join(err, r.to.Stdout.Flush())
}

func (r *replies) report(fault string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.to.Warnf("%s", fault)
}

// words returns what makes vectors of words: the encoders that the user trusts, or the server of a URL.
func words(v *run.Verb) (mcp.Words, func(), error) {
	if run.IsURL(v.Dir) {
		_, err := v.DB.Collections(v.Ctx) // to tell now of a server that refuses
		if d, is := v.DB.(*client.Database); is {
			return mcp.ServerWords(d), func() {}, err
		}
		return nil, func() {}, err
	}
	pool, err := ingest.Encoders(v, v.Dir, v.DB)
	if err != nil {
		return nil, nil, err
	}
	return mcp.Programs(pool), pool.Close, nil
}
