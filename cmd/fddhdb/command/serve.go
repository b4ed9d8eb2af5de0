package command

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/encoder"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/ingest"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/mcp"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/run"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/server"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
	"github.com/fddhdb/fddhdb/db/serve"
)

// A serving is a run of serve.
type serving struct {
	*run.Verb
	server                    server.Flags
	assistants, child, create bool
}

func serveCommand(e *run.Env) *cobra.Command {
	v := e.NewVerb(run.GroupServe, "serve DIR...", "Serve databases by HTTP", `
		Serve opens databases and serves them by HTTP, until Ctrl-C or SIGTERM. DIR is a
		database, or a folder of databases. The name of a database in URLs is that of its
		folder, without .db: photos.db is /v1/photos.

		Every verb takes such a URL in place of DIR: fddhdb count http://127.0.0.1:7070/photos.
		Verbs on this machine may go on giving the folder: they find the server by its socket.
		/openapi.json describes the requests, docs/SERVE.md explains them. /metrics is for
		Prometheus; /healthz says that the server runs, /readyz that no database has failed.

		On a loopback address everybody on this machine may do everything. On another address
		requests need a token of the file --tokens (see fddhdb token), and the server a
		certificate, or --plain if a proxy in front of it has one. SIGHUP reads tokens and
		certificate again.

		With --mcp assistants find tools at /mcp/photos, by the Model Context Protocol (see
		fddhdb help mcp). They may do what their token may.

		SIGTERM ends it: no new requests, and those under way have five seconds. What was
		acknowledged stays. --create creates databases that are missing; collections are then
		created by HTTP, or by init with the URL.

		--child is for a program that starts fddhdb to use a database, as the Python client
		does (fddhdb python). Serve then prints one line of JSON, with a URL on a free port
		and a token that no other process knows, and ends when its standard input ends.`, `
		fddhdb serve photos.db
		fddhdb serve /var/lib/fddhdb --address :7070 --tokens tokens --plain
		fddhdb search http://127.0.0.1:7070/photos --key cat.jpg`)
	o := serving{Verb: v}
	o.server.Register(v.Flags)
	v.Flags.BoolVar(&o.server.ReadOnly, "readonly", false,
		"change nothing; other processes can then only read the folder")
	v.Flags.BoolVar(&o.assistants, "mcp", false, "serve assistants, too, at /mcp/DATABASE")
	v.Flags.BoolVar(&o.child, "child", false, "serve one database to the program that has started this one")
	v.Flags.BoolVar(&o.create, "create", false, "create the databases that are missing, without collections")
	return v.Does(func() error {
		switch {
		case o.Session != nil:
			return exit.Usagef("serve runs outside of the shell: fddhdb serve %s", o.Dir)
		case o.create && o.server.ReadOnly:
			return exit.Usagef("--create and --readonly do not go together")
		case o.child:
			return o.runAsChild()
		}
		return o.run()
	})
}

// childName is the name in URLs of a database whose folder may have any name.
const childName = "db"

// runAsChild serves one database to the program at the other end of standard input, until that ends.
func (o *serving) runAsChild() (err error) {
	for _, flag := range []string{"address", "tokens", "cert", "cert-key", "plain", "origin"} {
		if o.Given(flag) {
			return exit.Usagef("--child chooses port and token itself: leave --%s out", flag)
		}
	}
	switch {
	case len(o.Args) > 1:
		return exit.Usagef("--child serves one database, not %d", len(o.Args))
	case run.IsURL(o.Dir):
		return exit.Usagef("%s is served already", o.Dir)
	}
	if err := run.NoFile(o.Dir); err != nil {
		return err
	}
	o.server.Address, o.server.Secret = "127.0.0.1:0", rand.Text()
	if err := o.server.Check(); err != nil {
		return err
	}
	files, err := o.server.Open()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(o.Ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, o.Stdin)
		cancel()
	}()
	p, err := o.OpenPlace(ctx, o.Dir, &db.Options{MustExist: !o.create, ReadOnly: o.server.ReadOnly})
	if err != nil {
		return run.OpenError(o.Dir, err)
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	o.WarnOfLosses(o.Dir, p)
	if o.Signals != nil {
		o.Signals.Serving(server.Grace, func() {})
	}
	pool, err := ingest.Encoders(o.Verb, o.Dir, p.DB)
	if err != nil {
		return err
	}
	encoders := server.Encoders{childName: pool}
	defer encoders.Close()
	databases := map[string]api.Database{childName: p.DB}
	return files.Run(ctx, server.Config{Databases: databases, Encoders: encoders, Log: o.Stderr,
		Ready: func(url string, _ []string) error {
			err := o.PrintJSON(map[string]string{"url": url + "/" + childName, "token": o.server.Secret})
			return errors.Join(err, o.Stdout.Flush())
		}})
}

func (o *serving) run() (err error) {
	if err := o.server.Check(); err != nil {
		return err
	}
	files, err := o.server.Open()
	if err != nil {
		return err
	}
	dirs, err := o.databasesIn(o.Args)
	if err != nil {
		return err
	}
	databases, encoders, closeAll, err := o.openAll(dirs)
	defer func() { err = errors.Join(err, closeAll()) }()
	if err != nil {
		return err
	}
	if o.Signals != nil {
		o.Signals.Serving(server.Grace, func() {
			if err := files.Load(); err != nil {
				o.Warnf("SIGHUP: the tokens and the certificate are those of before: %v", err)
				return
			}
			o.Notef("SIGHUP: the tokens and the certificate are read again")
		})
	}
	config := server.Config{Databases: databases, Encoders: encoders, Log: o.Stderr,
		Ready: func(url string, names []string) error {
			err := o.Tell(map[string]any{"url": url, "databases": names}, "%s serves %s", url,
				strings.Join(names, ", "))
			return errors.Join(err, o.Stdout.Flush())
		}}
	if o.assistants {
		config.Beside = o.beside
	}
	return files.Run(o.Ctx, config)
}

// beside returns the handler of the server with the tools of assistants beside it.
func (o *serving) beside(s *serve.Server, others http.Handler) (http.Handler, error) {
	tools, err := mcp.Handler(s, mcp.Options{Version: version(debug.ReadBuildInfo()).Version,
		Report: func(fault string) { fmt.Fprintln(o.Stderr, fault) }})
	if err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/mcp/") {
			tools.ServeHTTP(w, r)
		} else {
			others.ServeHTTP(w, r)
		}
	}), nil
}

// openAll opens databases and their encoders, by the names that they get in URLs.
func (o *serving) openAll(dirs []string) (map[string]api.Database, server.Encoders, func() error, error) {
	all, encoders := map[string]api.Database{}, server.Encoders{}
	var places []run.Place
	closeAll := func() (err error) {
		encoders.Close()
		var ends sync.WaitGroup
		errs := make([]error, len(places))
		for i, p := range places {
			ends.Go(func() { errs[i] = p.Close() })
		}
		ends.Wait()
		return errors.Join(errs...)
	}
	for _, dir := range dirs {
		p, err := o.OpenPlace(o.Ctx, dir, &db.Options{MustExist: !o.create, ReadOnly: o.server.ReadOnly})
		if err != nil {
			return nil, nil, closeAll, run.OpenError(dir, err)
		}
		places = append(places, p)
		o.WarnOfLosses(dir, p)
		name, err := nameOf(dir)
		if err == nil && all[name] != nil {
			err = exit.Usagef("two databases have the name %s: serve one of them under another folder", name)
		}
		var pool *encoder.Pool
		if err == nil {
			pool, err = ingest.Encoders(o.Verb, dir, p.DB)
		}
		if err != nil {
			return nil, nil, closeAll, err
		}
		all[name], encoders[name] = p.DB, pool
	}
	return all, encoders, closeAll, nil
}

// nameOf returns the name of a database in URLs.
func nameOf(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	base := filepath.Base(abs)
	name := cmp.Or(strings.TrimSuffix(strings.TrimSuffix(base, ".fddhdb"), ".db"), base)
	if strings.ContainsAny(name, `/\:`) || name == "." {
		return "",
			exit.Usagef("%s: the name of a database stands in URLs: its folder has no colon and no slash",
				dir)
	}
	return name, nil
}

// databasesIn returns the databases that arguments name: they themselves, or those in a folder.
func (o *serving) databasesIn(args []string) (dirs []string, err error) {
	for _, dir := range args {
		if run.IsURL(dir) {
			return nil, exit.Usagef("%s is served already", dir)
		}
		if err := run.NoFile(dir); err != nil {
			return nil, err
		}
		if run.IsDatabase(dir) || run.HasStore(dir) || o.create && run.IsEmpty(dir) {
			dirs = append(dirs, dir)
			continue
		}
		entries, err := os.ReadDir(dir)
		if errors.Is(err, os.ErrNotExist) {
			return nil, exit.Usagef("%s is missing: fddhdb init creates a database, and so does --create", dir)
		}
		if err != nil {
			return nil, exit.Usagef("%s: %w", dir, err)
		}
		n := len(dirs)
		for _, e := range entries {
			if path := filepath.Join(dir, e.Name()); run.IsDatabase(path) {
				dirs = append(dirs, path)
			}
		}
		if len(dirs) == n {
			return nil, exit.Usagef("%s is no database, and has none in it: fddhdb init creates one, or --create", dir)
		}
	}
	return dirs, nil
}

func healthCommand(e *run.Env) *cobra.Command {
	v := e.NewVerb(run.GroupServe, "health URL", "Ask a server whether it is ready", `
		Health asks a server of fddhdb serve whether it takes requests and no database of it
		has failed. It exits with 0 if so, else with 1, as health checks of containers and
		monitors expect. It needs no token.`, `
		fddhdb health http://127.0.0.1:7070`)
	return v.Does(func() error {
		u, err := url.Parse(v.Dir)
		if err != nil || !run.IsURL(v.Dir) || u.Host == "" {
			return exit.Usagef("health %s: a URL is expected, such as http://127.0.0.1:7070", v.Dir)
		}
		ctx, cancel := context.WithTimeout(v.Ctx, healthTime)
		defer cancel()
		ready := u.Scheme + "://" + u.Host + "/readyz"
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, ready, http.NoBody)
		if err != nil {
			return exit.Usagef("health %s: %w", v.Dir, err)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return exit.Failedf("%s does not answer: %w", u.Host, errors.Unwrap(err))
		}
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusNoContent {
			var p struct{ Detail string }
			_ = json.NewDecoder(io.LimitReader(answer.Body, 1<<16)).Decode(&p) // it may be another server
			return exit.Failedf("%s is not ready: %s", u.Host,
				cmp.Or(exit.Reason(term.Plain(p.Detail)), answer.Status))
		}
		return v.Tell(map[string]bool{"ready": true}, "%s is ready", u.Host)
	})
}

// healthTime bounds the answer to health.
const healthTime = 8 * time.Second

func tokenCommand(e *run.Env) *cobra.Command {
	v := e.NewVerb(run.GroupServe, "token FILE (--name NAME | --remove NAME | --list)", "Make tokens for serve", `
		Token makes a token for programs and people that use fddhdb serve, prints it once, and
		adds its hash to FILE, which it creates if it is missing. Nobody can get the token out
		of the file. A running server knows it after SIGHUP.

		--scope read looks, write also changes items and lets collections learn, admin also
		creates and drops collections, makes backups and compacts. --only keeps the token to
		some collections, or to DATABASE/COLLECTION of one database; it sees nothing of others.`, `
		fddhdb token tokens --name shop --scope write --only products
		fddhdb token tokens --list
		fddhdb token tokens --remove shop`)
	var name, scope, remove string
	var only []string
	var show bool
	v.Flags.StringVar(&name, "name", "", "make a token of this `NAME`")
	v.Flags.StringVar(&scope, "scope", "read", "what the token allows, `SCOPE`: read, write or admin")
	v.Flags.StringSliceVar(&only, "only", nil, "the only collections that it sees, a `LIST`")
	v.Flags.StringVar(&remove, "remove", "", "remove the token of this `NAME`")
	v.Flags.BoolVar(&show, "list", false, "list the tokens, without their texts")
	return v.Does(func() error {
		list, err := serve.ReadTokens(v.Dir)
		if err != nil && !(errors.Is(err, os.ErrNotExist) && name != "") {
			return exit.Failedf("%w", err)
		}
		at := func(name string) int {
			return slices.IndexFunc(list, func(t serve.Token) bool { return t.Name == name })
		}
		switch {
		case (name != "") == (remove != "") && !show, show && name+remove != "":
			return exit.Usagef("token needs one of --name NAME, --remove NAME and --list")
		case show:
			return listTokens(v, list)
		case remove != "":
			i := at(remove)
			if i < 0 {
				return exit.Usagef("--remove %s: there is no such token in %s", remove, v.Dir)
			}
			if err := serve.WriteTokens(v.Dir, slices.Delete(list, i, i+1)); err != nil {
				return exit.Failedf("%w", err)
			}
			return v.Tell(map[string]string{"removed": remove}, "removed token %s; SIGHUP tells the server",
				remove)
		case at(name) >= 0:
			return exit.Usagef("--name %s: %s has a token of this name: --remove it first", name, v.Dir)
		}
		access, err := serve.ParseAccess(name, scope, cmp.Or(strings.Join(only, ","), "*"))
		if err != nil {
			return exit.Usagef("%s", exit.Reason(err.Error()))
		}
		text, token := serve.NewToken(access)
		if err := serve.WriteTokens(v.Dir, append(list, token)); err != nil {
			return exit.Failedf("%w", err)
		}
		return v.Tell(map[string]any{"name": name, "scope": scope, "collections": access.Collections,
			"token": text}, "%s", text)
	})
}

// listTokens prints tokens without their hashes.
func listTokens(v *run.Verb, tokens []serve.Token) error {
	type form struct {
		Name        string   `json:"name"`
		Scope       string   `json:"scope"`
		Collections []string `json:"collections"`
	}
	var forms []form
	var rows [][]any
	for _, t := range tokens {
		forms = append(forms, form{t.Name, t.Scope.String(), append([]string{}, t.Collections...)})
		rows = append(rows, []any{term.TextCell(t.Name), t.Scope.String(),
			term.TextCell(cmp.Or(strings.Join(t.Collections, ", "), "all"))})
	}
	return run.List(v, forms, func() {
		v.PrintTable([]term.Column{term.Left("name"), term.Left("scope"), term.Left("collections")}, rows)
	})
}
