package cluster_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster"
	"github.com/fddhdb/fddhdb/db/cluster/internal/authority"
	"github.com/fddhdb/fddhdb/db/cluster/internal/natsproc"
)

// must stops the test where something that it only prepares fails.
func must[T any](t *testing.T) func(x T, err error) T {
	return func(x T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
}

// A certificate is one and its key, in files.
type certificate struct{ cert, key string }

func (c certificate) option() nats.Option { return nats.ClientCert(c.cert, c.key) }

func issue(t *testing.T, a *authority.Authority, name string) certificate {
	t.Helper()
	cert, key, err := a.Issue(name)
	if err != nil {
		t.Fatal(err)
	}
	return certificate{cert, key}
}

// seed makes an nkey, and returns its public key and the file of its seed.
func seed(t *testing.T, dir, name string) (public, file string) {
	t.Helper()
	key := must[nkeys.KeyPair](t)(nkeys.CreateUser())
	file = filepath.Join(dir, name)
	if err := os.WriteFile(file, must[[]byte](t)(key.Seed()), 0o600); err != nil {
		t.Fatal(err)
	}
	return must[string](t)(key.PublicKey()), file
}

// serves makes a cluster of a node through a connection and writes to it and searches it through another one.
func serves(t *testing.T, dir string, node, client *nats.Conn) {
	t.Helper()
	n, err := cluster.Open(t.Context(), cluster.NodeOptions{Cluster: "main", Node: "a", Dir: dir, Conn: node,
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	if err := cluster.Create(t.Context(), client, "main",
		cluster.CreateOptions{Shards: 2, Replicas: 1, Servers: 1, Nodes: []string{"a"},
			LogBytes: 64 << 20}); err != nil {
		t.Fatal(err)
	}
	c, err := cluster.Connect(t.Context(), client, "main", cluster.ClientOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	codes := codesOf(t, c)
	for i := range 5 {
		if _, err := codes.Put(t.Context(),
			&db.Item{Key: fmt.Sprint(i), Code: []byte{byte(i), 0}}); err != nil {
			t.Fatal(err)
		}
	}
	res, err := codes.Search(t.Context(), cluster.Query{Query: db.Query{Code: []byte{4, 0}, K: 1}})
	if err != nil || len(res.Hits) != 1 || res.Hits[0].Key != "4" {
		t.Fatal(res, err)
	}
}

// With TLS and certificates on both sides, a node that has an nkey and a client that has a password do what
// they do without. Whoever lacks one of these, or has that of somebody else, is refused soon, with an error
// that says why.
func TestTLS(t *testing.T) {
	dir := t.TempDir()
	ours, theirs := must[*authority.Authority](t)(authority.New(dir, "ours")),
		must[*authority.Authority](t)(authority.New(dir, "theirs"))
	server, mine, strange := issue(t, ours, "server"), issue(t, ours, "mine"), issue(t, theirs, "strange")
	public, file := seed(t, dir, "node.nk")
	_, otherFile := seed(t, dir, "other.nk")
	key, other := must[nats.Option](t)(nats.NkeyOptionFromSeed(file)),
		must[nats.Option](t)(nats.NkeyOptionFromSeed(otherFile))
	password, trust := nats.UserInfo("client", "secret"), nats.RootCAs(ours.File)
	servers, err := natsproc.Start(t.Context(), natsproc.Config{
		Dir: filepath.Join(dir, "nats"), Servers: 1, ClientOptions: []nats.Option{trust, mine.option(),
			password},
		ExtraConfig: fmt.Sprintf("tls { cert_file: %q, key_file: %q, ca_file: %q, verify: true, timeout: 5 }\nauthorization { users: [ { nkey: %s }, { user: client, password: secret } ] }\n",
			filepath.ToSlash(server.cert), filepath.ToSlash(server.key), filepath.ToSlash(ours.File), public),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer servers.Close()
	connect := func(options ...nats.Option) *nats.Conn {
		t.Helper()
		nc, err := cluster.ConnectNATS(strings.Join(servers.URLs(), ","), options...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		return nc
	}
	node, client := connect(trust, mine.option(), key), connect(trust, mine.option(), password)
	if s, err := client.TLSConnectionState(); err != nil || len(s.VerifiedChains) == 0 {
		t.Errorf("the certificate of the server: %v, %v", s, err)
	}
	serves(t, filepath.Join(dir, "a"), node, client)

	for _, c := range []struct {
		who     string
		options []nats.Option
		want    error
	}{
		{"who trusts nobody in particular", []nats.Option{mine.option(), password},
			cluster.ErrServerCertificate},
		{"who trusts another authority", []nats.Option{nats.RootCAs(theirs.File), mine.option(), password},
			cluster.ErrServerCertificate},
		{"who has no certificate", []nats.Option{trust, password}, cluster.ErrClientCertificate},
		{"who has a certificate of another authority", []nats.Option{trust, strange.option(), password},
			cluster.ErrClientCertificate},
		{"who has no credentials", []nats.Option{trust, mine.option()}, nats.ErrAuthorization},
		{"who has another password", []nats.Option{trust, mine.option(), nats.UserInfo("client", "guess")},
			nats.ErrAuthorization},
		{"who has another nkey", []nats.Option{trust, mine.option(), other}, nats.ErrAuthorization},
	} {
		begin := time.Now()
		nc, err := cluster.ConnectNATS(servers.URL(0), c.options...)
		if err == nil {
			nc.Close()
		}
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.who, err)
		}
		t.Logf("%s, in %v: %v", c.who, time.Since(begin), err)
	}
}

// Credentials are a file with a token of an operator's account and a seed. One that the account has not
// issued is refused.
func TestCredentials(t *testing.T) {
	dir := t.TempDir()
	operator, account, stranger := must[nkeys.KeyPair](t)(nkeys.CreateOperator()),
		must[nkeys.KeyPair](t)(nkeys.CreateAccount()), must[nkeys.KeyPair](t)(nkeys.CreateAccount())
	public := func(k nkeys.KeyPair) string { return must[string](t)(k.PublicKey()) }
	claims := jwt.NewAccountClaims(public(account))
	claims.Limits.JetStreamLimits = jwt.JetStreamLimits{DiskStorage: jwt.NoLimit, MemoryStorage: jwt.NoLimit,
		Streams: jwt.NoLimit, Consumer: jwt.NoLimit}
	accountToken := must[string](t)(claims.Encode(operator))
	system := must[nkeys.KeyPair](t)(nkeys.CreateAccount()) // of the servers themselves
	systemToken := must[string](t)(jwt.NewAccountClaims(public(system)).Encode(operator))
	all := jwt.NewOperatorClaims(public(operator))
	all.SystemAccount = public(system)
	operatorToken := must[string](t)(all.Encode(operator))
	creds := func(name string, issuer nkeys.KeyPair) nats.Option {
		key := must[nkeys.KeyPair](t)(nkeys.CreateUser())
		token := must[string](t)(jwt.NewUserClaims(public(key)).Encode(issuer))
		file := filepath.Join(dir, name+".creds")
		if err := os.WriteFile(file,
			must[[]byte](t)(jwt.FormatUserConfig(token, must[[]byte](t)(key.Seed()))), 0o600); err != nil {
			t.Fatal(err)
		}
		return nats.UserCredentials(file)
	}
	servers, err := natsproc.Start(t.Context(), natsproc.Config{
		Dir: filepath.Join(dir, "nats"), Servers: 1, ClientOptions: []nats.Option{creds("test", account)},
		ExtraConfig: fmt.Sprintf("operator: %s\nresolver: MEMORY\nresolver_preload: { %s: %s, %s: %s }\n",
			operatorToken, public(account), accountToken, public(system), systemToken),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer servers.Close()
	connect := func(name string) *nats.Conn {
		t.Helper()
		nc, err := cluster.ConnectNATS(servers.URL(0), creds(name, account))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		return nc
	}
	serves(t, filepath.Join(dir, "a"), connect("node"), connect("client"))
	if _, err := cluster.ConnectNATS(servers.URL(0), creds("stranger", stranger)); !errors.Is(err,
		nats.ErrAuthorization) {
		t.Error("a stranger:", err)
	}
	if _, err := cluster.ConnectNATS(servers.URL(0)); !errors.Is(err, nats.ErrAuthorization) {
		t.Error("nobody:", err)
	}
}

// Whoever was let in goes on when the servers refuse it for a while.
func TestRefusedForAWhile(t *testing.T) {
	dir := t.TempDir()
	servers, err := natsproc.Start(t.Context(), natsproc.Config{
		Dir: dir, Servers: 1, ExtraConfig: "authorization { users: [ { user: client, password: secret } ] }\n", ClientOptions: []nats.Option{nats.UserInfo("client", "secret")},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer servers.Close()
	refused := make(chan struct{}, 100)
	nc, err := cluster.ConnectNATS(servers.URL(0), nats.UserInfo("client", "secret"),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			if errors.Is(err, nats.ErrAuthorization) {
				select {
				case refused <- struct{}{}:
				default:
				}
			}
		}))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	file := filepath.Join(dir, "0", "server.conf")
	was := must[[]byte](t)(os.ReadFile(file))
	for _, conf := range [][]byte{bytes.Replace(was, []byte("password: secret"), []byte("password: another"),
		1), was} {
		if err := os.WriteFile(file, conf, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := servers.Restart(0); err != nil {
			t.Fatal(err)
		}
		if bytes.Equal(conf, was) {
			break
		}
		for range 4 {
			select {
			case <-refused:
			case <-time.After(time.Minute):
				t.Fatal("it is not refused")
			}
		}
	}
	eventually(t, "it is let in again", nc.IsConnected)
	if err := nc.FlushTimeout(10 * time.Second); err != nil {
		t.Error(err)
	}
}
