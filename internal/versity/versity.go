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

// Access and Secret are the credentials. Bucket is the only bucket.
const (
	Access = "access"
	Secret = "secret"
	Bucket = "bucket"
)

// Start starts a server that runs until the test ends, and returns its endpoint. If the
// environment variable VERSITYGW does not name the program, the test is skipped.
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
	// The sidecar folder holds attributes that would otherwise need a file system with
	// extended attributes.
	server := exec.CommandContext(ctx, program, "--access", Access, "--secret", Secret, "--port", address,
		"--quiet",
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

// makeBucket tries to make the bucket until the server listens.
func makeBucket(t *testing.T, address string) {
	t.Helper()
	client, err := minio.New(address, &minio.Options{Creds: credentials.NewStaticV4(Access, Secret, ""),
		Region: "us-east-1", MaxRetries: 100_000})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := client.MakeBucket(ctx, Bucket, minio.MakeBucketOptions{}); err != nil {
		t.Fatalf("make a bucket at %s: %v", address, err)
	}
}
