package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/fddhdb/fddhdb/db/backup"
)

// A Store keeps the objects of one repository in a bucket. Several goroutines, and
// several machines, may use it. It need not be closed.
type Store struct {
	client *minio.Client
	o      resolved
	source string // place of the credentials, for errors
}

var _ backup.Store = (*Store)(nil)

// Open looks for credentials and for the bucket, and returns a store. It asks the
// server whether the bucket can be listed. If it cannot, the error says what to do:
// about the bucket, the credentials, the region, the clock of this machine, or the
// network.
func Open(ctx context.Context, o Options) (*Store, error) {
	r, err := o.resolve()
	if err != nil {
		return nil, err
	}
	creds, source, err := findCredentials(ctx, o)
	if err != nil {
		return nil, err
	}
	if r.Transport == nil {
		if r.Transport, err = minio.DefaultTransport(r.secure); err != nil {
			return nil, fmt.Errorf("fddhdb: connections to %s: %w", r.Endpoint, err)
		}
	}
	s := &Store{o: r, source: source}
	// A mistake should be reported soon; later failures are worth waiting for.
	if err := s.connect(creds, min(4, r.Tries)); err != nil {
		return nil, err
	}
	if err := s.look(ctx); err != nil {
		return nil, s.failed(ctx, "look into the bucket", err)
	}
	// The region is known by now. Without it the first request of each client would ask
	// for it.
	if s.o.Region, err = s.client.GetBucketLocation(ctx, r.Bucket); err != nil {
		return nil, s.failed(ctx, "ask for the region of the bucket", err)
	}
	return s, s.connect(creds, r.Tries)
}

// connect makes the client for requests.
func (s *Store) connect(creds *credentials.Credentials, tries int) error {
	style := map[string]minio.BucketLookupType{"path": minio.BucketLookupPath,
		"host": minio.BucketLookupDNS}[s.o.Style]
	client, err := minio.New(s.o.host, &minio.Options{
		Creds: creds, Secure: s.o.secure, Region: s.o.Region, BucketLookup: style, MaxRetries: tries,
		Transport: noPages{leavesBody{s.o.Transport}},
	})
	if err != nil {
		return fmt.Errorf("fddhdb: %s: %w", s.o.Endpoint, err)
	}
	s.client = client
	return nil
}

// look lists one object, if there is one. A refused list says why, unlike a refused
// request for the head of a bucket.
func (s *Store) look(ctx context.Context) error {
	for o := range s.client.ListObjectsIter(ctx, s.o.Bucket,
		minio.ListObjectsOptions{Prefix: s.key(""), Recursive: true, MaxKeys: 1, FetchOwner: new(bool)}) {
		return o.Err
	}
	return context.Cause(ctx)
}

// String returns the URL of the store, without the endpoint.
func (s *Store) String() string {
	return strings.TrimSuffix("s3://"+s.o.Bucket+"/"+s.o.Prefix, "/")
}

// key returns the key of an object.
func (s *Store) key(name string) string {
	if s.o.Prefix == "" {
		return name
	}
	return s.o.Prefix + "/" + name
}

// begin checks the requirements of a request about an object.
func (s *Store) begin(ctx context.Context, name string) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return backup.CheckName(name)
}

// Put implements backup.Store. It holds up to 16 MiB in memory. If the context ends it
// waits for at most two seconds for the server to drop the upload.
func (s *Store) Put(ctx context.Context, name string, r io.ReadSeeker, size int64) error {
	if err := s.begin(ctx, name); err != nil {
		return err
	}
	if err := hasSize(r, size); err != nil {
		return fmt.Errorf("fddhdb: %s: put %s: %w", s, name, err)
	}
	body := &body{r: r, left: size}
	done := make(chan error, 1)
	go func() {
		// The reader has no method but Read, so it is read here and nowhere else, in
		// parts.
		_, err := s.client.PutObject(ctx, s.o.Bucket, s.key(name), body, size,
			minio.PutObjectOptions{SendContentMd5: true})
		done <- err
	}()
	select {
	case err := <-done:
		return s.failed(ctx, "put "+name, err)
	case <-ctx.Done():
		body.stop(context.Cause(ctx))
	}
	select {
	case <-done:
	case <-time.After(2 * time.Second):
	}
	return context.Cause(ctx)
}

// hasSize checks the number of bytes before any are sent: after the last one it would
// be too late.
func hasSize(r io.Seeker, size int64) error {
	start, err := r.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	end, err := r.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if end-start != size {
		return fmt.Errorf("there are %d bytes to read and not %d", end-start, size)
	}
	_, err = r.Seek(start, io.SeekStart)
	return err
}

// A body is the body of an upload: exactly so many bytes. Nothing reads r once it is
// stopped.
type body struct {
	mu      sync.Mutex // guards the fields below
	r       io.Reader
	left    int64 // bytes that are still to be read
	stopped error // why nothing is read any more; nil: it goes on
}

func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped != nil {
		return 0, b.stopped
	}
	if b.left == 0 {
		return 0, io.EOF
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	if err == io.EOF && b.left > 0 {
		// The client takes io.EOF and io.ErrUnexpectedEOF for the end of the object.
		err = fmt.Errorf("there are %d bytes less to read than there were", b.left)
	}
	return n, err
}

func (b *body) stop(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopped = err
}

// List implements backup.Store, in order of names. It asks for 1,000 objects at a time.
func (s *Store) List(ctx context.Context, prefix string, f func(backup.Object) error) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	options := minio.ListObjectsOptions{Prefix: s.key(prefix), Recursive: true, FetchOwner: new(bool)}
	for o := range s.client.ListObjectsIter(ctx, s.o.Bucket, options) {
		if o.Err != nil {
			return s.failed(ctx, "list "+prefix+"*", o.Err)
		}
		// Consoles make objects for folders, and some servers list objects that they
		// are about to rename.
		name := strings.TrimPrefix(o.Key, s.key(""))
		if !strings.HasPrefix(name, prefix) || backup.CheckName(name) != nil {
			continue
		}
		if err := f(backup.Object{Name: name, Size: o.Size, Modified: o.LastModified}); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return context.Cause(ctx) // the iterator does not return it
}

// Delete implements backup.Store.
func (s *Store) Delete(ctx context.Context, name string) error {
	if err := s.begin(ctx, name); err != nil {
		return err
	}
	err := s.client.RemoveObject(ctx, s.o.Bucket, s.key(name), minio.RemoveObjectOptions{})
	if minio.ToErrorResponse(err).Code == minio.NoSuchKey {
		return nil
	}
	return s.failed(ctx, "delete "+name, err)
}

// Get implements backup.Store. The reader ends with an error if the object is replaced
// meanwhile and the connection is cut.
func (s *Store) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	if err := s.begin(ctx, name); err != nil {
		return nil, err
	}
	r := &reader{s: s, ctx: ctx, name: name}
	if err := r.open(); err != nil {
		if minio.ToErrorResponse(err).Code == minio.NoSuchKey {
			return nil, fmt.Errorf("fddhdb: %s: get %s: %w", s, name, fs.ErrNotExist)
		}
		return nil, s.failed(ctx, "get "+name, err)
	}
	return r, nil
}

// A reader reads an object. If the connection is cut it reads the rest over another
// one. It belongs to one goroutine.
type reader struct {
	s    *Store
	ctx  context.Context
	name string

	body   io.ReadCloser // nil: there is no connection
	at     int64         // bytes that have been read
	size   int64         // of the object; -1: unknown
	etag   string        // of the object that was opened first
	failed error         // the final error
}

// open makes a connection that begins at position at.
func (r *reader) open() error {
	var o minio.GetObjectOptions
	if r.at > 0 {
		if err := errors.Join(o.SetRange(r.at, 0), o.SetMatchETag(r.etag)); err != nil {
			return err
		}
	}
	body, info, _, err := minio.Core{Client: r.s.client}.GetObject(r.ctx, r.s.o.Bucket, r.s.key(r.name), o)
	if err != nil {
		return err
	}
	if r.at == 0 {
		r.size, r.etag = info.Size, info.ETag
	} else if info.Size != r.size-r.at || info.ETag != r.etag {
		_ = body.Close()
		return fmt.Errorf("the server does not go on at byte %d", r.at)
	}
	r.body = body
	return nil
}

// Read implements io.Reader.
func (r *reader) Read(p []byte) (int, error) {
	for try := 1; ; try++ {
		if r.failed != nil {
			return 0, r.failed
		}
		n, err := r.read(p)
		if n > 0 || err == nil {
			return n, nil
		}
		if err == io.EOF && (r.size < 0 || r.at == r.size) {
			r.failed = io.EOF
			continue
		}
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		// If its size or identity is unknown, an object cannot be read on elsewhere.
		if r.size < 0 || r.etag == "" || try == r.s.o.Tries || r.ctx.Err() != nil {
			r.failed = r.s.failed(r.ctx, "read "+r.name, err)
			continue
		}
		if err := r.open(); err != nil {
			r.failed = r.s.failed(r.ctx, "read on "+r.name, err)
		}
	}
}

// read reads from the connection, and closes it after an error.
func (r *reader) read(p []byte) (int, error) {
	if r.body == nil {
		return 0, io.ErrUnexpectedEOF
	}
	n, err := r.body.Read(p)
	r.at += int64(n)
	if err != nil && n == 0 {
		_ = r.Close()
	}
	return n, err
}

// Close implements io.Closer.
func (r *reader) Close() error {
	if r.body == nil {
		return nil
	}
	err := r.body.Close()
	r.body = nil
	return err
}

// leavesBody keeps the body of a request from being read after the request has
// returned. If a server answers before it has read everything, or hangs up, net/http
// goes on reading the body in a goroutine of its own. Meanwhile the client goes back to
// the start of the body for the next try, and each of the two would read bytes of the
// other.
type leavesBody struct{ http.RoundTripper }

func (t leavesBody) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return t.RoundTripper.RoundTrip(r)
	}
	try := &try{over: make(chan struct{})}
	own := r.WithContext(r.Context()) // a transport must not change a request
	own.Body = tried{r.Body, try}
	if r.GetBody != nil {
		own.GetBody = func() (io.ReadCloser, error) {
			body, err := r.GetBody()
			return tried{body, try}, err
		}
	}
	resp, err := t.RoundTripper.RoundTrip(own)
	try.leave()
	if err != nil {
		try.end()
		return nil, err
	}
	resp.Body = reply{resp.Body, try}
	return resp, nil
}

// A try is one sending of a request.
type try struct {
	mu   sync.Mutex    // held while the body is read; guards left
	left bool          // nothing may read the body any more
	over chan struct{} // closed when the try is over
	once sync.Once     // closes over
}

// leave waits for a read that is under way; it reads from memory or a file.
func (t *try) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.left = true
}

func (t *try) end() { t.once.Do(func() { close(t.over) }) }

// tried is the body of a request.
type tried struct {
	io.ReadCloser
	try *try
}

var errAnswered = errors.New("the server has answered before it had everything")

// Read waits, once there is an answer, until the answer has been read: an error would
// close the connection, and the answer with it.
func (b tried) Read(p []byte) (int, error) {
	b.try.mu.Lock()
	if !b.try.left {
		defer b.try.mu.Unlock()
		return b.ReadCloser.Read(p)
	}
	b.try.mu.Unlock()
	<-b.try.over
	return 0, errAnswered
}

// reply is the body of an answer.
type reply struct {
	io.ReadCloser
	try *try
}

func (b reply) Close() error {
	b.try.end()
	return b.ReadCloser.Close()
}
