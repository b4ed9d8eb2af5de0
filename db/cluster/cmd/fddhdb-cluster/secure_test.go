package main

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/fddhdb/fddhdb/db/cluster/internal/authority"
)

// The flags of credentials and certificates reach the servers: a node has an nkey, verbs have a password,
// both have certificates. Where one is missing a verb says what to give.
func TestCredentialsAndCertificates(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ours, err := authority.New(dir, "ours")
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := authority.New(dir, "theirs")
	if err != nil {
		t.Fatal(err)
	}
	issue := func(a *authority.Authority, name string) (cert, key string) {
		cert, key, err := a.Issue(name)
		if err != nil {
			t.Fatal(err)
		}
		return cert, key
	}
	key, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	public, err := key.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	seed, err := key.Seed()
	if err != nil {
		t.Fatal(err)
	}
	serverCert, serverKey := issue(ours, "server")
	cert, certKey := issue(ours, "client")
	strange, strangeKey := issue(theirs, "stranger")
	s := build(t, 1, fmt.Sprintf(
		"tls { cert_file: %q, key_file: %q, ca_file: %q, verify: true, timeout: 5 }\nauthorization { users: [ { nkey: %s }, { user: admin, password: secret } ] }",
		filepath.ToSlash(serverCert), filepath.ToSlash(serverKey), filepath.ToSlash(ours.File), public),
		nats.RootCAs(ours.File), nats.ClientCert(cert, certKey), nats.UserInfo("admin", "secret"))
	s.write("node.nk", string(seed)+"\n")
	s.write("password.txt", "secret\n")
	s.write("guess.txt", "guess")

	trust := []string{"--tls-ca", ours.File}
	tls := append(trust, "--tls-cert", cert, "--tls-key", certKey)
	as := func(flags []string, args ...string) []string { return append(args, flags...) }
	admin := append(tls[:len(tls):len(tls)], "--user", "admin", "--password-file", "password.txt")
	s.node("a", append(tls[:len(tls):len(tls)], "--nkey", "node.nk")...)
	eventually(t, "the node answers", func() bool {
		_, _, code := s.try("", as(admin, "create", "--shards", "2", "--replicas", "1", "--servers-per-log",
			"1", "--log-bytes", "64MiB")...)
		return code == 0
	})
	s.ok(as(admin, "init", "--codes", "16")...)
	s.ok(as(admin, "put", "a", "--code", "0102")...)
	s.says(as(admin, "search", "--code", "0102"), "a ")

	password := []string{"--user", "admin", "--password-file", "password.txt"}
	s.fails(1, as(password, "status", "--tls-cert", cert, "--tls-key", certKey), "is not trusted",
		"--tls-ca FILE")
	s.fails(1, as(password, "status", "--tls-ca", theirs.File, "--tls-cert", cert, "--tls-key", certKey),
		"is not trusted", "--tls-ca FILE")
	s.fails(1, as(password, "status", "--tls-ca", ours.File), "certificate of this client", "--tls-cert FILE")
	s.fails(1, as(password, "status", "--tls-ca", ours.File, "--tls-cert", strange, "--tls-key", strangeKey),
		"certificate of this client")
	s.fails(1, as(tls, "status"), "refuse these credentials")
	s.fails(1, as(tls, "status", "--user", "admin", "--password-file", "guess.txt"),
		"refuse these credentials")
	s.fails(1, as(tls, "node", "--name", "b", "--dir", "b"), "refuse these credentials")
}
