// Package versity runs a real S3 server for tests: the Versity gateway, which keeps
// buckets as folders. make s3 installs it.
//
// It imports the standard library and the MinIO client, which makes the bucket. Each test
// has a server, a port and a folder of its own, so that tests may run in parallel.
package versity
