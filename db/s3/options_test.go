package s3

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// alone removes everything that credentials and settings could come from.
func alone(t *testing.T) (home string) {
	t.Helper()
	for _, e := range os.Environ() {
		if name, _, _ := strings.Cut(e, "="); strings.HasPrefix(name, "AWS_") {
			t.Setenv(name, "")
		}
	}
	home = t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	return home
}

func TestParseURL(t *testing.T) {
	alone(t)
	for s, want := range map[string]Options{
		"s3://bucket":              {Bucket: "bucket"},
		"s3://bucket/":             {Bucket: "bucket"},
		"s3://my.bucket-1/a/b/":    {Bucket: "my.bucket-1", Prefix: "a/b"},
		"s3://bucket/%C3%BC%20%25": {Bucket: "bucket", Prefix: "ü %"},
		"s3://bucket/a?endpoint=https://localhost:9000&region=eu-central-1&style=path": {
			Bucket: "bucket", Prefix: "a", Endpoint: "https://localhost:9000", Region: "eu-central-1",
			Style: "path"},
		"s3://bucket?endpoint=http://10.0.0.1": {Bucket: "bucket", Endpoint: "http://10.0.0.1"},
		"s3://bucket?endpoint=minio.example":   {Bucket: "bucket", Endpoint: "minio.example"},
	} {
		if got, err := ParseURL(s); err != nil || got != want {
			t.Errorf("%s: %+v, %v", s, got, err)
		}
	}
	for s, want := range map[string]string{
		"":                       "s3://BUCKET/PREFIX is expected",
		"bucket":                 "s3://BUCKET/PREFIX is expected",
		"s3:bucket":              "s3://BUCKET/PREFIX is expected",
		"http://bucket/x":        "s3://BUCKET/PREFIX is expected",
		"s3://":                  "the name of the bucket is missing",
		"s3:///prefix":           "the name of the bucket is missing",
		"s3://Bucket":            "no name of a bucket",
		"s3://b":                 "no name of a bucket",
		"s3://bucket:80/x":       "no name of a bucket",
		"s3://bucket/a//b":       "the prefix",
		"s3://bucket/a/../b":     "the prefix",
		"s3://bucket/%00":        "the prefix",
		"s3://bucket/%zz":        "with %25 for a %",
		"s3://bucket?region=%zz": "with %25 for a %",
		"s3://bucket/" + strings.Repeat("a", 801):       "at most 800",
		"s3://bucket/a#b":                               "write %23",
		"s3://bucket?path-style=true":                   `"path-style" in the URL of a bucket: only endpoint, region and style`,
		"s3://bucket?region=a&region=b":                 "given twice",
		"s3://bucket?style=dns":                         "path or host",
		"s3://bucket?endpoint=ftp://x":                  "https://HOST:PORT",
		"s3://bucket?endpoint=https://x/y":              "https://HOST:PORT",
		"s3://bucket?endpoint=https://":                 "https://HOST:PORT",
		"s3://key:hunter2@bucket/x":                     "credentials do not belong into a URL",
		"s3://key:hunter2@bucket/%zz":                   "with %25",
		"s3://bucket?secret_key=hunter2":                "credentials do not belong into a URL",
		"s3://bucket?AccessKey=hunter2":                 "credentials do not belong into a URL",
		"s3://bucket?endpoint=https://key:hunter2@host": "credentials do not belong into a URL",
	} {
		_, err := ParseURL(s)
		if err == nil {
			t.Errorf("%s: no error", s)
			continue
		}
		refused(t, err, want)
	}
}

// Any URL is read or refused, and its credentials are not repeated.
func FuzzParseURL(f *testing.F) {
	f.Add("s3://bucket/prefix?endpoint=https://host:9000&region=x&style=path")
	f.Add("s3://a:b@bucket/%2e%2e/x#y")
	f.Fuzz(func(t *testing.T, s string) {
		o, err := ParseURL(s)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "fddhdb: ") {
				t.Errorf("%q: %v", s, err)
			}
			return
		}
		if o.Bucket == "" || o.AccessKeyID != "" || strings.HasPrefix(o.Prefix, "/") ||
			strings.Contains(o.Prefix, "//") {
			t.Errorf("%q: %+v", s, o)
		}
	})
}

// Credentials are found in the usual places, the nearest first.
func TestCredentials(t *testing.T) {
	home := alone(t)
	find := func(o Options) string {
		t.Helper()
		c, source, err := findCredentials(t.Context(), o)
		if err != nil {
			refused(t, err, "no credentials for S3 were found: set AWS_ACCESS_KEY_ID")
			return err.Error()
		}
		v, err := c.GetWithContext(nil)
		if err != nil {
			t.Fatal(err)
		}
		return v.AccessKeyID + " " + v.SecretAccessKey + " " + v.SessionToken + " from " + source
	}
	find(Options{})
	write := func(text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(home, ".aws"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(home, ".aws", "credentials"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("[default]\naws_access_key_id = half\n")
	if got := find(Options{}); !strings.Contains(got, "the profile default") {
		t.Errorf("half of the credentials: %s", got)
	}
	write("[default]\naws_access_key_id = a\naws_secret_access_key = b\n[other]\naws_access_key_id = c\naws_secret_access_key = d\naws_session_token = e\n")
	if got := find(Options{}); got != "a b  from the profile default" {
		t.Error(got)
	}
	t.Setenv("AWS_PROFILE", "other")
	if got := find(Options{}); got != "c d e from the profile other" {
		t.Error(got)
	}
	t.Setenv("AWS_PROFILE", "missing")
	if got := find(Options{}); !strings.Contains(got, "the profile missing") {
		t.Error(got)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "f")
	if got := find(Options{}); !strings.Contains(got,
		"the environment has an access key without its secret") {
		t.Error(got)
	}
	t.Setenv("AWS_SECRET_ACCESS_KEY", "g")
	if got := find(Options{}); got != "f g  from the environment" {
		t.Error(got)
	}
	if got := find(Options{AccessKeyID: "h", SecretAccessKey: "i"}); got != "h i  from the options" {
		t.Error(got)
	}
}

// The environment gives the server if nothing else does.
func TestEnvironment(t *testing.T) {
	alone(t)
	r, err := Options{Bucket: "bucket"}.resolve()
	if err != nil || r.host != "s3.amazonaws.com" || !r.secure || r.Region != "" {
		t.Errorf("%+v, %v", r, err)
	}
	t.Setenv("AWS_ENDPOINT_URL", "http://a:1")
	t.Setenv("AWS_DEFAULT_REGION", "far")
	if r, err = (Options{Bucket: "bucket"}).resolve(); err != nil || r.host != "a:1" || r.secure ||
		r.Region != "far" {
		t.Errorf("%+v, %v", r, err)
	}
	t.Setenv("AWS_ENDPOINT_URL_S3", "https://b:2")
	t.Setenv("AWS_REGION", "near")
	if r, err = (Options{Bucket: "bucket"}).resolve(); err != nil || r.host != "b:2" || !r.secure ||
		r.Region != "near" {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err = (Options{Bucket: "bucket", Endpoint: "c", Region: "here"}).resolve(); err != nil ||
		r.host != "c" || !r.secure || r.Region != "here" {
		t.Errorf("%+v, %v", r, err)
	}
	t.Setenv("AWS_ENDPOINT_URL_S3", "nonsense://x")
	_, err = Options{Bucket: "bucket"}.resolve()
	refused(t, err, "the endpoint")
	_, err = Options{Bucket: "bucket", Endpoint: "c", AccessKeyID: "a"}.resolve()
	refused(t, err, "give both or neither")
}
