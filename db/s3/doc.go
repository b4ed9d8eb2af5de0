// Package s3 keeps backups in a bucket of Amazon S3, or of any store with its protocol.
//
//	o, err := s3.ParseURL("s3://my-bucket/photos?region=eu-central-1")
//	store, err := s3.Open(ctx, o)
//	m, err := d.Backup(ctx, store, db.BackupOptions{})
//
// Uploads carry the MD5 of their bytes, so that the server refuses bytes that were
// damaged on the way. Objects of more than 16 MiB are sent in parts of that size, and
// become an object with the last part; each upload holds one part in memory. Requests
// that fail temporarily are tried again. A download that is cut goes on at the same
// position.
//
// # Requirements
//
// Reads and lists must see every write that was answered before they began, as with
// Amazon S3, MinIO, Ceph and Versity. The credentials need s3:ListBucket on the bucket,
// and s3:GetObject, s3:PutObject, s3:DeleteObject and s3:AbortMultipartUpload on its
// objects; also s3:GetBucketLocation if no region is given.
//
// If the connection breaks after the last byte of an upload, it is unknown whether the
// server has the object: Put returns an error, and the object may be there, whole. A
// process that is killed during an upload leaves parts that are no object but take
// space: give the bucket a rule that deletes incomplete uploads
// (AbortIncompleteMultipartUpload) after some days. In a bucket with versions deleted
// objects take space until a rule expires them. No rule may delete or archive objects
// themselves.
//
// # Imports and proof
//
// The package imports db/backup and minio-go. Programs that do not import it do not
// link that library. The tests of package storetest run against a server that fails on
// demand and, in TestServer, against a real one.
package s3
