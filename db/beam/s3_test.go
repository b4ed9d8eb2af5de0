package beam

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/internal/versity"
)

// With a real S3 server input, temporary folder, model and shards lie in a bucket.
func TestS3(t *testing.T) {
	endpoint := versity.Start(t)
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL": endpoint, "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": versity.Access,
		"AWS_SECRET_ACCESS_KEY":     versity.Secret,
		"AWS_EC2_METADATA_DISABLED": "true",
	} {
		t.Setenv(name, value)
	}
	s := newSet(t, synth.Config{Seed: 5, Items: 900, Classes: 5, Dims: []int{8, 6}}, 3)
	bucket := "s3://" + versity.Bucket
	files, err := os.ReadDir(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(filepath.Join(s.dir, f.Name()))
		if err == nil {
			err = write(t.Context(), bucket+"/in/"+f.Name(), b)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	in := Input{
		Vectors: []NamedGlob{{"image", bucket + "/in/image-*.npy"}, {"text", bucket + "/in/text-*.npy"}},
		Labels:  bucket + "/in/labels-*.txt", Keys: bucket + "/in/keys-*.txt",
	}
	r := testRun(t)
	r.Temp = bucket + "/temp"
	trained, err := Train(t.Context(), &in, small(2), r)
	if err != nil {
		t.Fatal(err)
	}
	if err := trained.Save(t.Context(), bucket+"/model"); err != nil {
		t.Fatal(err)
	}
	got, err := read(t.Context(), bucket+"/model")
	if want := exported(t, s.database(t), small(2)); err != nil || !bytes.Equal(got, want) {
		t.Errorf("another model, or %v", err)
	}
	built, err := Build(t.Context(), &in, BuildOptions{Model: bucket + "/model", Out: bucket + "/shards",
		Shards: 3}, r)
	if err != nil {
		t.Fatal(err)
	}
	if built.Items != 900 {
		t.Fatalf("%+v", built)
	}
	e, err := Encode(t.Context(), &Input{Backups: bucket + "/shards/shard-0001"},
		EncodeOptions{Model: bucket + "/model", Out: bucket + "/codes"}, r)
	if err != nil || e.Items != built.Shards[1].Items {
		t.Fatalf("%+v, %v", e, err)
	}
	for _, path := range []string{bucket + "/temp/*", bucket + "/temp*"} {
		if left, err := list(t.Context(), path); err != nil || len(left) > 0 {
			t.Errorf("%v is left, %v", left, err)
		}
	}
}
