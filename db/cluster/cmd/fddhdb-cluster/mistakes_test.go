package main

import (
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

// What the command line says wrong is told before anything is asked of a server.
func TestMistakes(t *testing.T) {
	s := &stage{t: t, dir: t.TempDir(), servers: "nats://127.0.0.1:1", cluster: "main"}
	s.write("a.creds", "nonsense")
	for _, c := range []struct {
		args  string
		code  int
		texts string
	}{
		{"nosuch", 2, `there is no verb "nosuch"`},
		{"serch x", 2, "did you mean search?"},
		{"ls", 2, "did you mean collections?"},
		{"help nosuch", 2, "no verb"},
		{"get", 2, "get needs the key of an item: fddhdb-cluster get KEY..."},
		{"count b", 2, `does not know what to do with "b": fddhdb-cluster count`},
		{"spaces", 2, "did you mean models?"},
		{"status --jsn", 2, "did you mean --json?"},
		{"status --timeout soon", 2, "--timeout"},
		{"status --timeout -1s", 2, "above 0"},
		{"node --dir x", 2, "--name is missing"},
		{"node --name x", 2, "--dir is missing"},
		{"create", 2, "--shards N is missing"},
		{"create --shards x", 2, "--shards"},
		{"create --shards 4 --log-bytes lots", 2, "256MiB"},
		{"create --shards 4 --replicas 0", 2, "--replicas 0"},
		{"create --shards 4 --servers-per-log 9", 2, "--servers-per-log 9"},
		{"create --shards 4 --backups x", 2, "--backups is for the shards of --from"},
		{"init", 2, "--modality NAME:DIM"},
		{"init --codes 12", 2, "multiple of 8"},
		{"init --codes 16 --field year", 2, "NAME:TYPE is expected"},
		{"import", 2, "import needs a file"},
		{"import --items a.jsonl --keys k.txt", 2, "--items has whole items"},
		{"import --codes a.npy --keys k.txt --number-from 0", 2, "one of them says the keys"},
		{"search", 2, "search needs a query"},
		{"search --code 00 --key a", 2, "not several"},
		{"search --code 00 -k 0", 2, "-k"},
		{"delete", 2, "delete needs the key of an item"},
		{"activate", 2, "fddhdb-cluster models lists them"},
		{"index --recall 1.5", 2, "above 0, up to 1"},
		{"serve --address 10.0.0.1:7070", 2, "--tokens FILE says who may do what"},
		{"serve --address nonsense", 2, "HOST:PORT"},
		{"serve x", 2, `does not know what to do with "x"`},
		{"count", 1, "no NATS server answers at nats://127.0.0.1:1"},
		{"serve", 1, "no NATS server answers at nats://127.0.0.1:1"},
		{"move one --from a --to b", 2, "no number of a shard"},
		{"move 1 --from a", 2, "--to"},
		{"move 1 --from a --to a", 2, "one node"},
		{"backup --keep 4", 2, "--trim"},
		{"status", 1, "no NATS server answers at nats://127.0.0.1:1"},
		{"status --servers nats://user:secret@127.0.0.1:1", 1, "at nats://127.0.0.1:1:"},
		// Whoever reaches servers without credentials can change everything.
		{"status --servers nats://10.0.0.1:4222", 2, "10.0.0.1:4222 is another machine"},
		{"status --servers nats://127.0.0.1:1,example.org", 2, "example.org is another machine"},
		{"node --name a --dir d --servers 10.0.0.1", 2, "--creds FILE"},
		{"status --servers 10.0.0.1 --creds nosuch.creds", 1, "nosuch.creds"},
		{"status --servers 10.0.0.1 --nkey nosuch.nk", 1, "nosuch.nk"},
		{"status --servers 10.0.0.1 --nkey a.creds", 1, "--nkey a.creds"},
		{"status --servers 10.0.0.1 --user x --password-file nosuch.txt", 1, "nosuch.txt"},
		{"status --servers 10.0.0.1 --tls-ca nosuch.pem --creds a.creds", 1, "nosuch.pem"},
		{"status --servers 10.0.0.1 --tls-ca a.creds", 2, "10.0.0.1 is another machine"},
		{"status --servers 10.0.0.1 --tls-cert a.pem", 2, "--tls-key"},
		{"status --user x", 2, "--password-file"},
		{"status --password-file a.creds", 2, "--user"},
		{"status --creds a.creds --nkey a.creds", 2, "one of them says who asks"},
		{"status --servers localhost:1", 1, "no NATS server answers"},
		{"status --servers nats://[::1]:1", 1, "no NATS server answers"},
		{"status --servers ,", 2, "nats://HOST:PORT"},
		{"status --servers nats://", 2, "is no URL"},
		{"status --servers nats://nosuch.invalid:1 --insecure", 1, "nosuch.invalid"},
	} {
		s.fails(c.code, strings.Fields(c.args), c.texts)
	}
	if _, remarks, code := s.try(""); code != 2 || !strings.Contains(remarks, "a verb is missing") ||
		!strings.Contains(remarks, "Usage:") {
		t.Error(code, remarks)
	}
}

// Credentials come from the environment, unless a flag gives credentials, an nkey or a password: then none of
// the environment is used.
func TestSurroundings(t *testing.T) {
	s := &stage{t: t, dir: t.TempDir(), servers: "10.0.0.1", cluster: "main"}
	s.fails(2, []string{"status"}, "10.0.0.1 is another machine")
	t.Setenv("FDDHDB_CREDS", "env.creds")
	s.fails(1, []string{"status"}, "--creds", "env.creds")
	s.fails(1, []string{"status", "--creds", "flag.creds"}, "flag.creds")
	s.fails(1, []string{"status", "--user", "x", "--password-file", "flag.txt"}, "--password-file",
		"flag.txt")
	t.Setenv("FDDHDB_TLS_CA", "env.pem")
	s.write("env.creds", "")
	s.fails(1, []string{"status"}, "--tls-ca", "env.pem")
	t.Setenv("FDDHDB_USER", "x")
	t.Setenv("FDDHDB_PASSWORD_FILE", "env.txt")
	s.fails(2, []string{"status"}, "one of them says who asks")
	t.Setenv("FDDHDB_CREDS", "")
	s.fails(1, []string{"status"}, "--password-file", "env.txt")
	s.fails(1, []string{"status", "--nkey", "flag.nk"}, "flag.nk")
}

// Every verb explains itself, in lines that a terminal holds, with an example.
func TestHelp(t *testing.T) {
	s := &stage{t: t, dir: t.TempDir()}
	for _, cmd := range rootCommand(newEnv(strings.NewReader(""), io.Discard, io.Discard)).Commands() {
		if cmd.Hidden {
			continue
		}
		out := s.ok("help", cmd.Name())
		if cmd.Name() != "help" && !strings.Contains(out, "Examples:") {
			t.Errorf("%s has no example", cmd.Name())
		}
		for _, line := range strings.Split(s.ok("help")+out, "\n") {
			if len(line) > 90 {
				t.Errorf("help %s: %q is long", cmd.Name(), line)
			}
		}
	}
}

// A node waits for servers that do not run yet, and ends when it is told to.
func TestNodeWithoutServers(t *testing.T) {
	s := &stage{t: t, dir: t.TempDir(), servers: "nats://127.0.0.1:1", cluster: "main"}
	s.write("d", "")
	cmd := s.command(t.Context(), "node", "--name", "a", "--dir", "data")
	said, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 4096)
	n, err := said.Read(b)
	if err != nil || !strings.Contains(string(b[:n]), "waiting for a NATS server") {
		t.Error(string(b[:n]), err)
	}
	_ = cmd.Process.Signal(os.Interrupt)
	timer := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]size{"1": 1, "256MiB": 256 << 20, "1GiB": 1 << 30, "1.5 GB": 1.5e9,
		"2kb": 2000, "10mib": 10 << 20} {
		var s size
		if err := s.Set(text); err != nil || s != want {
			t.Errorf("%s: %d, %v", text, s, err)
		}
	}
	for _, text := range []string{"", "-1", "x", "1 TB", "nan", "1e30"} {
		if new(size).Set(text) == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
