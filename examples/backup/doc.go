// Backup backs up a database, adds items, backs it up again, and restores the first
// backup. A search in the database finds added items. In the restored database it finds
// the same as before; if not, the program fails.
//
//	go run ./examples/backup [FOLDER | "s3://BUCKET/PREFIX?endpoint=https://HOST:PORT"]
//
// The backups stay in the folder or the bucket. The credentials of a bucket come from
// AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or from a profile of ~/.aws. Without a folder
// or bucket the backups are removed at the end.
//
// The program imports db, db/backup and db/s3, as any program may. TestBackup,
// TestBackupToFolder and TestBackupToS3 run it.
package main
