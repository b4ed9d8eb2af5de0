package s3

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"
)

// findCredentials looks for credentials in the usual places, in the usual order. It
// also returns the name of the place. A place with temporary credentials is asked again
// when they expire.
func findCredentials(ctx context.Context, o Options) (*credentials.Credentials, string, error) {
	if o.AccessKeyID != "" {
		return credentials.NewStaticV4(o.AccessKeyID, o.SecretAccessKey, o.SessionToken), "the options", nil
	}
	// Outside of a cloud nothing answers at the address of its metadata.
	client := &http.Client{Timeout: 5 * time.Second}
	places := []place{
		{"the environment", &credentials.EnvAWS{}},
		{"the profile " + profile(), &credentials.FileAWSCredentials{}},
	}
	if disabled := os.Getenv("AWS_EC2_METADATA_DISABLED"); !strings.EqualFold(disabled, "true") {
		places = append(places, place{"the role of the machine", &credentials.IAM{Client: client}})
	}
	var why []string
	for _, p := range places {
		c := credentials.New(p.provider)
		v, err := c.GetWithContext(&credentials.CredContext{Client: client, Context: ctx})
		switch {
		case ctx.Err() != nil:
			return nil, "", ctx.Err()
		case err == nil && v.AccessKeyID != "" && v.SecretAccessKey != "":
			return c, p.name, nil
		// A missing file is fine; half of the credentials is a mistake.
		case errors.Is(err, os.ErrNotExist):
		case err != nil && p.name != "the role of the machine":
			why = append(why, fmt.Sprintf(" (%s: %v)", p.name, err))
		case err == nil && (v.AccessKeyID != "" || v.SecretAccessKey != ""):
			why = append(why, fmt.Sprintf(" (%s has an access key without its secret, or the other way round)", p.name))
		}
	}
	return nil, "", fmt.Errorf("fddhdb: no credentials for S3 were found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "+
		"or write them to ~/.aws/credentials and choose with AWS_PROFILE, or give the machine a role%s", strings.Join(why, ""))
}

// A place is a place where credentials may be.
type place struct {
	name     string
	provider credentials.Provider
}

func profile() string {
	if p := os.Getenv("AWS_PROFILE"); p != "" {
		return p
	}
	return "default"
}
