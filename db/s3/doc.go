// Package s3 keeps backups in a bucket of Amazon S3, or of any store that speaks its
// protocol.
//
//	o, err := s3.ParseURL("s3://my-bucket/photos?region=eu-central-1")
//	store, err := s3.Open(ctx, o)
//	m, err := d.Backup(ctx, store, db.BackupOptions{})
//
// Uploads carry the MD5 of their bytes, which the server checks, so that it refuses what
// was damaged on the way. Objects of more than 16 MiB go in parts of that size, which
// become an object when the last one is there; each upload holds one part in memory.
// Requests that fail for a while are tried again, and a download that is cut goes on
// where it was.
//
// # What the store has to keep
//
// Reads and lists have to see every write that was answered before they began, as those
// of Amazon S3, MinIO, Ceph and Versity do. The credentials need s3:ListBucket on the
// bucket, and s3:GetObject, s3:PutObject, s3:DeleteObject and s3:AbortMultipartUpload on
// what is in it; s3:GetBucketLocation too where no region is given.
//
// Where the connection breaks after the last byte of an upload, nobody can tell whether
// it is there: Put then returns an error and the object may be there, whole. A process
// that is killed during an upload leaves parts that are no object but take space: give
// the bucket a rule that deletes incomplete uploads (AbortIncompleteMultipartUpload)
// after some days. In a bucket with versions, deleted objects go on taking space until a
// rule expires them. No rule may delete or archive objects themselves.
package s3
