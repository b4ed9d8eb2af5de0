// Package versity runs a real S3 server for tests: the Versity gateway, which keeps
// buckets as folders. make s3 installs it.
package versity

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// Access and Secret are the credentials, Bucket the one bucket that there is.
const (
	Access = "access"
	Secret = "secret"
	Bucket = "bucket"
)

// Start starts a server for the time of a test, and returns its endpoint. Where the
// environment does not say in VERSITYGW where the program is, the test is skipped.
func Start(t *testing.T) (endpoint string) {
	t.Helper()
	program := os.Getenv("VERSITYGW")
	if program == "" {
		t.Skip("needs an S3 server: make s3, or VERSITYGW=/path/to/versitygw")
	}
	dir := t.TempDir()
	for _, sub := range []string{"buckets", "sidecar"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	ctx, stop := context.WithCancel(context.Background())
	// The sidecar has what would otherwise need a file system with extended attributes.
	server := exec.CommandContext(ctx, program, "--access", Access, "--secret", Secret, "--port", address, "--quiet",
		"posix", "--sidecar", filepath.Join(dir, "sidecar"), filepath.Join(dir, "buckets"))
	var said strings.Builder
	server.Stdout, server.Stderr = &said, &said
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		_ = server.Wait()
		if t.Failed() {
			t.Logf("%s: %s", program, said.String())
		}
	})
	makeBucket(t, address)
	return "http://" + address
}

// makeBucket tries until the server listens.
func makeBucket(t *testing.T, address string) {
	t.Helper()
	client, err := minio.New(address, &minio.Options{Creds: credentials.NewStaticV4(Access, Secret, ""), Region: "us-east-1", MaxRetries: 100_000})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := client.MakeBucket(ctx, Bucket, minio.MakeBucketOptions{}); err != nil {
		t.Fatalf("make a bucket at %s: %v", address, err)
	}
}
