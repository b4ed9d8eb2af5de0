package s3

import (
	"os"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/fddhdb/fddhdb/db/backup"
	"github.com/fddhdb/fddhdb/db/backup/storetest"
)

// Servers of tests need no time to recover.
func TestMain(m *testing.M) {
	minio.DefaultRetryUnit, minio.DefaultRetryCap = time.Millisecond, 10*time.Millisecond
	os.Exit(m.Run())
}

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) backup.Store { return newFake(t, nil).open(t) })
}
