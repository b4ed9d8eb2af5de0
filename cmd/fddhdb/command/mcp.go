package command

import (
	"context"
	"errors"
	"runtime/debug"
	"sync"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/mcp"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/server"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db/client"
)

func mcpCommand(e *env) *cobra.Command {
	v := e.verb(groupServe, "mcp DIR", "Let an assistant use a database", `
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
	v.onAnyCollection("let the assistant use the collection `NAME` alone")
	var write bool
	v.f.BoolVar(&write, "write", false, "let the assistant store and delete items")
	return v.does(func() error {
		if v.session != nil {
			return exit.Usagef("mcp runs outside of the shell: fddhdb mcp %s", v.dir)
		}
		open := v.share
		if write {
			open = v.change
		}
		return open(func() error { return v.assist(write) })
	})
}

// assist answers an assistant until stdin or the context ends.
func (v *verb) assist(write bool) error {
	words, closeWords, err := v.words()
	if err != nil {
		return err
	}
	defer closeWords()
	defer context.AfterFunc(v.ctx, closeWords)() // a call that waits for a program ends, too
	if v.signals != nil {
		v.signals.Serving(server.Grace, func() {})
	}
	out := &replies{to: v.Printer}
	name, err := nameOf(v.dir)
	if err != nil {
		name = v.dir
	}
	opt := mcp.Options{Name: name, Version: version(debug.ReadBuildInfo()).Version, Write: write,
		Words: words, Report: out.report}
	if v.c != nil {
		opt.Collection = v.c.Name()
	}
	s, err := mcp.New(v.d, opt)
	if err != nil {
		return err
	}
	return s.Run(v.ctx, v.stdin, out)
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
func (v *verb) words() (mcp.Words, func(), error) {
	if isURL(v.dir) {
		_, err := v.d.Collections(v.ctx) // to tell now of a server that refuses
		if d, is := v.d.(*client.Database); is {
			return mcp.ServerWords(d), func() {}, err
		}
		return nil, func() {}, err
	}
	pool, err := v.encoders(v.dir, v.d)
	if err != nil {
		return nil, nil, err
	}
	return mcp.Programs(pool), pool.Close, nil
}
