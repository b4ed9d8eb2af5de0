// Package s3 tests backups against a real S3 server, the Versity gateway (make s3). Without one its tests
// skip.
package s3
