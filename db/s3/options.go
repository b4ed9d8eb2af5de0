package s3

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"
)

// Options say where a store is. Zero fields other than Bucket are found as described.
type Options struct {
	// Bucket is the name of an existing bucket.
	Bucket string

	// Prefix begins the keys of all objects, followed by a slash. "": they are at the
	// top of the bucket. Each repository needs its own prefix.
	Prefix string

	// Endpoint is the server: https://HOST[:PORT] or HOST[:PORT]; or
	// http://HOST[:PORT], whose connection anyone on the way can read. "": the
	// environment's AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL, else Amazon.
	Endpoint string

	// Region is the region of the bucket. "": the environment's AWS_REGION or
	// AWS_DEFAULT_REGION, else the answer of the server.
	Region string

	// Style says where requests name the bucket: "path" in the path of the URL, "host"
	// in the name of the host. "": as is usual for the server, the host with Amazon and
	// the path with most others.
	Style string

	// AccessKeyID and SecretAccessKey are the credentials, with a SessionToken if they
	// are temporary. "": the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY,
	// AWS_SESSION_TOKEN), or the profile AWS_PROFILE of ~/.aws/credentials and
	// ~/.aws/config, or the role of the machine or container.
	AccessKeyID, SecretAccessKey, SessionToken string

	// Tries is the number of times that a temporarily failing request is made in all,
	// half a second apart. 0 means 20.
	Tries int

	// Transport makes connections. nil: one that obeys HTTPS_PROXY, NO_PROXY and, for
	// private certificates, SSL_CERT_FILE.
	Transport http.RoundTripper
}

// errCredentialsInURL does not repeat them.
var errCredentialsInURL = errors.New("fddhdb: credentials do not belong into a URL, which others can see: " +
	"set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or use a profile of ~/.aws/credentials")

// ParseURL reads
//
//	s3://BUCKET[/PREFIX][?endpoint=https://HOST:PORT&region=REGION&style=path|host]
//
// Credentials in the URL are an error.
func ParseURL(s string) (Options, error) {
	u, err := url.Parse(s)
	if err != nil {
		// The error of url.Parse repeats the whole URL.
		return Options{}, errors.New(
			"fddhdb: not a URL of a bucket: s3://BUCKET/PREFIX is expected, with %25 for a %")
	}
	if u.User != nil {
		return Options{}, errCredentialsInURL
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return Options{}, errors.New(
			"fddhdb: the part of the URL behind the question mark: NAME=VALUE&NAME=VALUE is expected, with %25 for a %")
	}
	o := Options{Bucket: u.Host, Prefix: strings.Trim(u.Path, "/")}
	for name, values := range query {
		field := map[string]*string{"endpoint": &o.Endpoint, "region": &o.Region, "style": &o.Style}[name]
		switch {
		case isSecret(name):
			return Options{}, errCredentialsInURL
		case field == nil:
			return Options{}, fmt.Errorf(
				"fddhdb: %q in the URL of a bucket: only endpoint, region and style are possible", name)
		case len(values) > 1:
			return Options{}, fmt.Errorf("fddhdb: %s is given twice in the URL of a bucket", name)
		}
		*field = values[0]
	}
	switch {
	case u.Scheme != "s3" || u.Opaque != "":
		return Options{}, fmt.Errorf("fddhdb: %s: not a URL of a bucket: s3://BUCKET/PREFIX is expected",
			u.Redacted())
	case u.Fragment != "" || strings.HasSuffix(s, "#"):
		return Options{}, errors.New("fddhdb: # in the URL of a bucket: write %23")
	}
	_, err = o.resolve()
	return o, err
}

func isSecret(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc([]string{"key", "secret", "token", "password", "credential"},
		func(word string) bool {
			return strings.Contains(name, word)
		})
}

// resolve finds missing options, and checks all of them.
func (o Options) resolve() (resolved, error) {
	r := resolved{Options: o}
	r.Endpoint = cmp.Or(o.Endpoint, os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"),
		"https://s3.amazonaws.com")
	r.Region = cmp.Or(o.Region, os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"))
	r.Tries = cmp.Or(o.Tries, 20)
	if !strings.Contains(r.Endpoint, "://") {
		r.Endpoint = "https://" + r.Endpoint
	}
	u, err := url.Parse(r.Endpoint)
	switch {
	case err == nil && u.User != nil:
		return r, errCredentialsInURL
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" ||
		strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
		return r, fmt.Errorf("fddhdb: the endpoint %q: https://HOST, https://HOST:PORT or the same with http:// is expected", r.Endpoint)
	case o.Bucket == "":
		return r, errors.New("fddhdb: the name of the bucket is missing: s3://BUCKET/PREFIX")
	case !bucketName(o.Bucket):
		return r, fmt.Errorf("fddhdb: %q is no name of a bucket, which has 3 to 63 lower-case letters, digits, dots and hyphens", o.Bucket)
	case o.Style != "" && o.Style != "path" && o.Style != "host":
		return r, fmt.Errorf("fddhdb: style %q: path or host is expected", o.Style)
	case (o.AccessKeyID == "") != (o.SecretAccessKey == ""):
		return r, errors.New("fddhdb: an access key without its secret, or the other way round: give both or neither")
	case o.Tries < 0:
		return r, fmt.Errorf("fddhdb: %d tries: 1 or more are possible", o.Tries)
	}
	r.host, r.secure = u.Host, u.Scheme == "https"
	// 200 bytes are left for the name.
	if len(o.Prefix) > 800 {
		return r, fmt.Errorf("fddhdb: a prefix of %d bytes: at most 800 are possible", len(o.Prefix))
	}
	if o.Prefix == "" {
		return r, nil
	}
	for element := range strings.SplitSeq(o.Prefix, "/") {
		// Servers and proxies disagree about these.
		if element == "" || element == "." || element == ".." ||
			strings.ContainsFunc(element, func(c rune) bool { return c < ' ' || c == 0x7f || c == 0xfffd }) {
			return r, fmt.Errorf("fddhdb: the prefix %q: words with a slash between them are expected, neither . nor .. among them", o.Prefix)
		}
	}
	return r, nil
}

// resolved are Options with every field but the credentials.
type resolved struct {
	Options
	host   string // of the endpoint
	secure bool   // by TLS
}

func bucketName(s string) bool {
	return len(s) >= 3 && len(s) <= 63 && !strings.HasPrefix(s, ".") && !strings.HasSuffix(s, ".") &&
		!strings.Contains(s, "..") &&
		!strings.ContainsFunc(s, func(c rune) bool {
			return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '.' && c != '-'
		})
}

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
			why = append(why, fmt.Sprintf(
				" (%s has an access key without its secret, or the other way round)", p.name))
		}
	}
	return nil, "", fmt.Errorf(
		"fddhdb: no credentials for S3 were found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "+
			"or write them to ~/.aws/credentials and choose with AWS_PROFILE, or give the machine a role%s",
		strings.Join(why, ""))
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
