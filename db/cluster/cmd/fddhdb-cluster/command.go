package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/flags"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/run"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster"
)

// An env is the state that verbs share. It belongs to the goroutine that runs the verb.
type env struct {
	*term.Printer
	stdin   io.Reader
	link    link
	json    bool // print JSON
	mode    term.Mode
	at      *run.Elsewhere // the cluster, for the verbs of fddhdb
	partial bool           // searches answer without shards that do not
	refused func(error)    // hears that the servers refuse a request
}

func newEnv(stdin io.Reader, stdout, stderr io.Writer) *env {
	e := &env{Printer: term.NewPrinter(stdout, stderr), stdin: stdin, mode: term.ModeTable}
	e.Program = "fddhdb-cluster"
	e.at = &run.Elsewhere{Program: e.Program, Open: e.open}
	return e
}

// runLine runs a command line, given without the name of the program, and returns the exit code.
func runLine(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	e := newEnv(stdin, stdout, stderr)
	root := rootCommand(e)
	root.SetArgs(append([]string{}, args...)) // with nil cobra would take the arguments of the process
	err := e.Scope(func() error { return root.ExecuteContext(ctx) })
	if err != nil {
		e.Errorf("%s", e.at.Words(message(err)))
	}
	return exit.Code(err)
}

// Groups of verbs in help.
const (
	groupCluster = "cluster"
	groupCare    = "care"
	groupOther   = "other"
)

func rootCommand(e *env) *cobra.Command {
	root := &cobra.Command{
		Use:   "fddhdb-cluster VERB [flags]",
		Short: "A database that several machines serve, while any of them may be lost",
		Long: usage.Prose(`
			fddhdb-cluster serves collections of items from several machines. The items are
			cut into shards by their keys, several nodes keep each shard, and several NATS
			servers keep the log of each shard. A write is acknowledged when its log has it
			durably; searches are exact, as those of one database.

			The verbs about collections and items are those of fddhdb, without DIR. Every verb
			explains itself: fddhdb-cluster help VERB. With --json it prints one JSON object, or
			one a line where there are several; --mode prints tables as csv, and JSON as one
			array. Results go to stdout, errors and remarks to stderr. The exit code is 0 when it is
			done, 1 when it failed, 2 when the command line was wrong, and 3 when stored data
			is corrupt.

			FDDHDB_SERVERS, FDDHDB_CLUSTER and FDDHDB_USER are used where the flags of these
			names are not given; so are, each with the path of a file, FDDHDB_CREDS,
			FDDHDB_NKEY, FDDHDB_PASSWORD_FILE, FDDHDB_TLS_CA, FDDHDB_TLS_CERT and
			FDDHDB_TLS_KEY.`),
		Example: usage.Example(`
			Start three NATS servers with JetStream and sync_interval: always, then three
			nodes, each on a machine of its own, and make a cluster:

			export FDDHDB_SERVERS=nats://10.0.0.1:4222,nats://10.0.0.2:4222,nats://10.0.0.3:4222
			fddhdb-cluster node --name a --dir /var/lib/fddhdb --creds node.creds

			export FDDHDB_CREDS=admin.creds
			fddhdb-cluster create --shards 16
			fddhdb-cluster init --collection photos --modality image:512 --modality text:512`),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.ArbitraryArgs,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			e.link.surroundings(cmd.Flags())
			if cmd.Flags().Changed("timeout") && e.link.timeout <= 0 {
				return exit.Usagef("--timeout %v: a time above 0 is expected, such as 10s", e.link.timeout)
			}
			e.at.Place = "cluster " + e.link.cluster
			return e.BeginOutput(cmd, e.mode)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownVerb(cmd, args[0])
			}
			cmd.SetOut(e.Stderr)
			if err := cmd.Help(); err != nil {
				return err
			}
			return exit.Usagef("a verb is missing")
		},
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	f := root.PersistentFlags()
	e.link.register(f)
	f.BoolVar(&e.json, "json", false, "print JSON")
	f.Var(&e.mode, "mode", "print results as table, csv, json or jsonl; --json overrules it")
	root.SetIn(e.stdin)
	root.SetOut(e.Stdout)
	root.SetErr(e.Stderr)
	root.SetFlagErrorFunc(usage.FlagError)
	usage.SetHelp(root, "Flags of every verb:", anyVerb, unknownVerb)
	root.AddGroup(
		&cobra.Group{ID: groupCluster, Title: "Clusters:"},
		&cobra.Group{ID: groupCare, Title: "Look after a cluster:"},
	)
	e.addDataVerbs(root)
	root.AddGroup(&cobra.Group{ID: groupOther, Title: "Other:"})
	root.AddCommand(
		nodeCommand(e), createCommand(e), statusCommand(e), serveCommand(e),
		backupCommand(e), moveCommand(e), drainCommand(e), compareCommand(e), rebuildCommand(e),
		skipCommand(e),
	)
	root.SetHelpCommandGroupID(groupOther)
	return root
}

// arguments requires least to most arguments of a verb; most < 0 is any number. Errors call them what.
func arguments(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		for i, a := range args {
			if a == "" && i < least {
				args = args[:i]
				break
			}
		}
		switch {
		case len(args) < least:
			return exit.Usagef("%s needs %s: %s", cmd.Name(), what, usageOf(cmd))
		case most >= 0 && len(args) > most:
			return exit.Usagef("%s does not know what to do with %q: %s", cmd.Name(), args[most],
				usageOf(cmd))
		}
		return nil
	}
}

// usageOf returns the usage line of a verb.
func usageOf(cmd *cobra.Command) string {
	return strings.TrimSuffix(cmd.UseLine(), " [flags]")
}

// message returns the text of an error for the user. Prefixes may stand anywhere: errors hold other errors.
func message(err error) string {
	text := exit.Message(err)
	for _, part := range []string{"fddhdb: ", "invalid argument: "} {
		text = strings.ReplaceAll(text, part, "")
	}
	return text
}

// forever is the deadline of moves, comparisons and backups, which may take hours. Without a deadline a call
// would get --timeout.
const forever = 30 * 24 * time.Hour

// failed marks an error that the command line has not caused.
func failed(err error) error {
	if err == nil {
		return nil
	}
	return exit.Failedf("%w", err)
}

// verbsElsewhere maps verbs of other tools to ours.
var verbsElsewhere = map[string]string{
	"add": "put", "set": "put", "insert": "put", "upsert": "put", "load": "import", "show": "get",
	"cat": "get", "fetch": "get",
	"list": "collections", "ls": "collections", "find": "search", "query": "search", "remove": "delete",
	"rm": "delete", "del": "delete", "labels": "facets", "spaces": "models", "drop-space": "drop",
	"info": "status", "nodes": "status", "shards": "status", "start": "node",
	"run": "node", "new": "create", "rebalance": "move", "split": "create", "reshard": "create",
	"grow":    "create",
	"restore": "create",
}

// unknownVerb returns the error for a verb that does not exist.
func unknownVerb(root *cobra.Command, word string) error {
	var names []string
	for _, c := range root.Commands() {
		names = append(names, c.Name())
	}
	verb := verbsElsewhere[strings.ToLower(word)]
	if verb == "" {
		verb = term.Nearest(strings.ToLower(word), names)
	}
	if verb != "" {
		return exit.Usagef("there is no verb %q: did you mean %s?", word, verb)
	}
	return exit.Usagef("there is no verb %q: fddhdb-cluster help lists the verbs", word)
}

// anyVerb names the flags of all verbs, for the help of one verb.
const anyVerb = `--servers, --cluster, --creds, --nkey, --user, --password-file, --tls-ca,
--tls-cert, --tls-key, --insecure, --timeout, --json, --mode: fddhdb-cluster help`

// A size is the value of a flag: a number of bytes, with or without a unit.
type size int64

func (s *size) Type() string { return "SIZE" }

func (s *size) String() string {
	for _, u := range sizeUnits {
		if n := int64(*s); n > 0 && n%u.bytes == 0 {
			return fmt.Sprint(n/u.bytes, u.name)
		}
	}
	return fmt.Sprint(int64(*s))
}

// sizeUnits are the units of String, the largest first.
var sizeUnits = []struct {
	name  string
	bytes int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}}

func (s *size) Set(text string) error {
	number, unit := strings.TrimSpace(text), int64(1)
	for _, u := range sizeUnits {
		if rest, is := strings.CutSuffix(strings.ToLower(number), strings.ToLower(u.name)); is {
			number, unit = strings.TrimSpace(rest), u.bytes
			break
		}
	}
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || !(n > 0) || n*float64(unit) > 1<<60 {
		return errors.New("a number of bytes is expected, such as 256MiB or 1GiB")
	}
	*s = size(n * float64(unit))
	return nil
}

// A link has the flags for the servers of a cluster and for the credentials.
type link struct {
	servers, cluster       string
	creds, nkey            string
	user, passwordFile     string
	tlsCA, tlsCert, tlsKey string
	insecure               bool
	timeout                time.Duration
}

func (l *link) register(f *pflag.FlagSet) {
	f.StringVar(&l.servers, "servers", nats.DefaultURL, "the NATS servers, `URL[,URL...]`")
	f.StringVar(&l.cluster, "cluster", "main", "the cluster `NAME`")
	f.StringVar(&l.creds, "creds", "", "credentials of NATS, a `FILE`")
	f.StringVar(&l.nkey, "nkey", "", "the seed of an nkey, a `FILE`")
	f.StringVar(&l.user, "user", "", "the `NAME` of a user who has a password")
	f.StringVar(&l.passwordFile, "password-file", "",
		"the password of --user, a `FILE`: others can read a command line")
	f.StringVar(&l.tlsCA, "tls-ca", "",
		"certificate authorities to trust for the servers, a `FILE`.pem (default: those of the system)")
	f.StringVar(&l.tlsCert, "tls-cert", "", "the certificate of this client, a `FILE`.pem")
	f.StringVar(&l.tlsKey, "tls-key", "", "the key of --tls-cert, a `FILE`.pem")
	f.BoolVar(&l.insecure, "insecure", false, "connect without credentials to servers of other machines")
	f.DurationVar(&l.timeout, "timeout", 30*time.Second, "a `TIME` after which a request fails")
}

// surroundings takes values without a flag from the environment: --tls-ca from FDDHDB_TLS_CA, and so on. If a
// flag gives credentials, an nkey or a password, the environment's are ignored. The values are no defaults of
// flags, because help shows defaults, and a URL may have a password.
func (l *link) surroundings(f *pflag.FlagSet) {
	take := func(flags map[string]*string) {
		for name, value := range flags {
			if v := os.Getenv("FDDHDB_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))); v != "" &&
				!f.Changed(name) {
				*value = v
			}
		}
	}
	take(map[string]*string{"servers": &l.servers, "cluster": &l.cluster, "tls-ca": &l.tlsCA,
		"tls-cert": &l.tlsCert, "tls-key": &l.tlsKey})
	if who := map[string]*string{"creds": &l.creds, "nkey": &l.nkey, "user": &l.user,
		"password-file": &l.passwordFile}; !slices.ContainsFunc(slices.Collect(maps.Keys(who)), f.Changed) {
		take(who)
	}
}

// connect connects to the NATS servers. It calls said with errors that the servers report between answers.
func (l *link) connect(name string, said func(error)) (*nats.Conn, error) {
	urls, options, err := l.how(name, said)
	if err != nil {
		return nil, err
	}
	nc, err := cluster.ConnectNATS(strings.Join(urls, ","), options...)
	switch {
	case errors.Is(err, nats.ErrNoServers):
		return nil, exit.Failedf("%w: no NATS server answers at %s: start one, or say with --servers where they are", errNoServer, redacted(urls))
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired):
		return nil, exit.Failedf("the NATS servers at %s refuse these credentials: %w", redacted(urls), err)
	case errors.Is(err, cluster.ErrServerCertificate):
		return nil, exit.Failedf("%s: %w: --tls-ca FILE says who has to have issued it", redacted(urls), err)
	case errors.Is(err, cluster.ErrClientCertificate):
		return nil, exit.Failedf("%s: %w: --tls-cert FILE and --tls-key FILE are it", redacted(urls), err)
	case err != nil:
		return nil, exit.Failedf("%s: %w", redacted(urls), err)
	}
	return nc, nil
}

// how returns the servers, and the options of connections to them.
func (l *link) how(name string, said func(error)) (urls []string, options []nats.Option, err error) {
	if urls, err = l.urls(); err != nil {
		return nil, nil, err
	}
	options = []nats.Option{nats.Name("fddhdb-cluster " + name),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { said(err) })}
	who, err := l.credentials()
	return urls, append(options, who...), err
}

// credentials returns the options with credentials and trusted certificates. Files are read at each connect,
// because they may be replaced while a node runs.
func (l *link) credentials() (options []nats.Option, err error) {
	for _, f := range []struct{ flag, file string }{
		{"--creds", l.creds}, {"--nkey", l.nkey}, {"--password-file", l.passwordFile},
		{"--tls-ca", l.tlsCA}, {"--tls-cert", l.tlsCert}, {"--tls-key", l.tlsKey},
	} {
		if f.file == "" {
			continue
		}
		if err := readable(f.flag, f.file); err != nil {
			return nil, err
		}
	}
	switch {
	case l.creds != "":
		options = append(options, nats.UserCredentials(l.creds))
	case l.nkey != "":
		key, err := nats.NkeyOptionFromSeed(l.nkey)
		if err != nil {
			return nil, exit.Failedf("--nkey %s: %w", l.nkey, err)
		}
		options = append(options, key)
	case l.user != "":
		options = append(options, nats.UserInfoHandler(func() (user, password string) {
			b, _ := os.ReadFile(l.passwordFile) // if the file is gone, the server refuses the empty password
			return l.user, strings.TrimRight(string(b), "\r\n")
		}))
	}
	if l.tlsCA != "" {
		options = append(options, nats.RootCAs(l.tlsCA))
	}
	if l.tlsCert != "" {
		options = append(options, nats.ClientCert(l.tlsCert, l.tlsKey))
	}
	return options, nil
}

// errNoServer says that no server answers.
var errNoServer = errors.New("not connected")

// readable refuses an unreadable file.
func readable(flag, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return exit.Failedf("%s: %w", flag, err)
	}
	return f.Close()
}

// urls returns the servers. It refuses servers on other machines without credentials, because anyone who
// reaches such servers can read and change everything.
func (l *link) urls() (urls []string, err error) {
	if (l.tlsCert == "") != (l.tlsKey == "") {
		return nil, exit.Usagef("--tls-cert and --tls-key go together: one of them is missing")
	}
	if (l.user == "") != (l.passwordFile == "") {
		return nil, exit.Usagef("--user and --password-file go together: one of them is missing")
	}
	ways := 0
	for _, way := range []string{l.creds, l.nkey, l.user} {
		if way != "" {
			ways++
		}
	}
	if ways > 1 {
		return nil, exit.Usagef("--creds, --nkey and --user: one of them says who asks")
	}
	given := ways > 0 || l.tlsCert != ""
	for _, s := range flags.SplitList(l.servers) {
		if !strings.Contains(s, "://") {
			s = "nats://" + s
		}
		u, err := url.Parse(s)
		if err != nil || u.Hostname() == "" {
			return nil, exit.Usagef("--servers: %q is no URL: nats://HOST:PORT is expected", s)
		}
		if !given && !l.insecure && u.User == nil && !isLoopback(u.Hostname()) {
			return nil, exit.Usagef("--servers: %s is another machine, and there are no credentials, so that anybody there could read and change everything: "+
				"give --creds FILE, --nkey FILE, --user NAME and --password-file FILE, or --tls-cert FILE and --tls-key FILE; --insecure connects all the same", u.Host)
		}
		urls = append(urls, s)
	}
	if len(urls) == 0 {
		return nil, exit.Usagef("--servers: nats://HOST:PORT is expected, or several with commas between them")
	}
	return urls, nil
}

// isLoopback reports whether a host is this machine, by its name alone: another name may lead anywhere.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// redacted names servers without passwords.
func redacted(urls []string) string {
	var all []string
	for _, s := range urls {
		if u, err := url.Parse(s); err == nil {
			u.User = nil
			s = u.String()
		}
		all = append(all, s)
	}
	return strings.Join(all, ", ")
}

// guarded calls f with a context that also ends when the servers refuse a request: such a request never gets
// an answer.
func (e *env) guarded(ctx context.Context, f func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	e.refused = cancel
	err := f(ctx)
	var refused *refusedError
	if err != nil && errors.As(context.Cause(ctx), &refused) {
		return exit.Failedf("%w", refused)
	}
	return e.word(err)
}

// connect connects to the servers, for a verb that is guarded.
func (e *env) connect() (*nats.Conn, error) {
	refused := e.refused
	return e.link.connect("client", func(err error) {
		if errors.Is(err, nats.ErrPermissionViolation) {
			refused(forbidden(err))
		}
	})
}

// withServers calls f with a connection, guarded.
func (e *env) withServers(ctx context.Context, f func(ctx context.Context, nc *nats.Conn) error) error {
	return e.guarded(ctx, func(ctx context.Context) error {
		nc, err := e.connect()
		if err != nil {
			return err
		}
		defer nc.Close()
		return f(ctx, nc)
	})
}

// A refusedError says what credentials do not allow.
type refusedError struct{ what string }

func (e *refusedError) Error() string {
	return "the NATS servers do not let these credentials " + e.what +
		": ask for other ones, or see permissions.conf of package cluster"
}

// forbidden rewords the error of a server that refuses a request.
func forbidden(err error) error {
	_, what, found := strings.Cut(err.Error(), "Permissions Violation for ")
	if !found {
		what = "do this"
	}
	what, _, _ = strings.Cut(what, " on connection")
	return &refusedError{strings.Replace(strings.Replace(what, "Publish", "publish", 1), "Subscription",
		"subscribe", 1)}
}

// client returns a client of the cluster.
func (e *env) client(ctx context.Context, nc *nats.Conn) (*cluster.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, e.link.timeout)
	defer cancel()
	c, err := cluster.Connect(ctx, nc, e.link.cluster, cluster.ClientOptions{Timeout: e.link.timeout})
	if errors.Is(err, db.ErrNotFound) {
		return nil, exit.Failedf("there is no cluster %s: fddhdb-cluster create makes it, and --cluster names another one", e.link.cluster)
	}
	return c, err
}

// withClient calls f with a client of the cluster.
func (e *env) withClient(ctx context.Context, f func(ctx context.Context, c *cluster.Client) error) error {
	return e.withServers(ctx, func(ctx context.Context, nc *nats.Conn) error {
		c, err := e.client(ctx, nc)
		if err != nil {
			return err
		}
		defer c.Close()
		return f(ctx, c)
	})
}

// word adds advice to an error.
func (e *env) word(err error) error {
	var silent *cluster.ShardError
	var unknown *cluster.UnknownError
	switch {
	case errors.As(err, &unknown):
		return exit.Failedf("%w: a write without a condition may be made again", err)
	case errors.Is(err, cluster.ErrLogFull):
		return exit.Failedf("%w: fddhdb-cluster backup --trim makes room, the most with --keep 1", err)
	case errors.As(err, &silent):
		return exit.Failedf("%w: fddhdb-cluster status tells which nodes answer", err)
	}
	return err
}
