package openapi

import (
	"net/http"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/db/serve"
)

// The checker sees what is not as the document says.
func TestCheckerSeesFaults(t *testing.T) {
	const m = "/v1/photos/collections/main"
	const job = `{"id":"a","kind":"count","database":"photos","state":"running","began":"2020-01-02T03:04:05Z"}`
	c := serving(t, serve.Options{})
	for _, x := range []struct {
		method, path, sent string
		status             int
		kind, got, fault   string
	}{
		{"POST", m + ":count", `{}`, 200, "application/json", `{"count":1}`, ""},
		{"POST", m + ":count", `{}`, 200, "application/json", `{"count":"1"}`, "integer"},
		{"POST", m + ":count", `{}`, 200, "application/json", `{"count":1,"more":1}`, "additional"},
		{"POST", m + ":count", `{}`, 200, "application/json", `{}`, "count"},
		{"POST", m + ":count", `{}`, 200, "text/plain", `1`, "text/plain"},
		{"POST", m + ":count", `{}`, 201, "application/json", `{"count":1}`, "no such status"},
		{"POST", m + ":count", `{}`, 204, "", ``, "no such status"},
		{"POST", m + ":count", `{"were":1}`, 200, "application/json", `{"count":1}`, "were"},
		{"POST", m + ":count?odd=1", `{}`, 404, "application/json", `{"count":1}`, "application/json"},
		{"POST", m + ":count", `{}`, 404, "application/problem+json", `{"type":"about:blank"}`, "code"},
		{"POST", m + ":nothing", `{}`, 200, "application/json", `{}`, "no such path"},
		{"DELETE", m + ":count", ``, 200, "application/json", `{}`, "no such method"},
		{"GET", "/healthz", ``, 204, "", ``, ""},
		{"GET", "/healthz", ``, 204, "", `x`, "no content"},
		{"GET", m + "/keys", ``, 200, "application/x-ndjson", "\"a\"\n\"b\"\n", ""},
		{"GET", m + "/keys", ``, 200, "application/x-ndjson", "\"a\"\n1\n", "string"},
		{"GET", m + "/keys?limit=x", ``, 200, "application/x-ndjson", "", "limit"},
		{"POST", m + ":search", `{"vector":"AAAA"}`, 200, "application/json",
			`{"hits":[],"next":null,"space":0,"revision":0}`, ""},
		{"POST", m + ":search", `{"vector":"#"}`, 200, "application/json",
			`{"hits":[],"next":null,"space":0,"revision":0}`, "vector"},
		{"POST", m + ":search", `{}`, 200, "application/json",
			`{"hits":[{"key":"a","row":1,"distance":"x","score":null,"similarity":null}],"next":null,"space":0,` +
				`"revision":0}`, "distance"},
		{"GET", "/v1/photos/jobs/a", ``, 200, "application/json", job, ""},
		{"GET", "/v1/photos/jobs/a", ``, 200, "application/json", strings.Replace(job, "running", "lost", 1),
			"state"},
		{"GET", "/v1/photos/jobs/a", ``, 200, "application/json",
			`{"id":"a","kind":"verify","database":"photos","state":"done","began":"2020-01-02T03:04:05Z",` +
				`"result":{"records":"many"}}`, "VerificationForm"},
		{"GET", "/v1/photos/jobs/a/events", ``, 200, "text/event-stream",
			"event: end\ndata: " + job + "\n\n", ""},
		{"GET", "/v1/photos/jobs/a/events", ``, 200, "text/event-stream",
			"event: end\ndata: {}\n\n", "JobForm"},
		{"GET", "/v1/photos/jobs/a/events", ``, 200, "text/event-stream", "event: x\ndata: {}\n\n", "event"},
	} {
		var faults []string
		c.fault = func(s string) { faults = append(faults, s) }
		req, err := http.NewRequest(x.method, c.url+x.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if x.sent != "" {
			req.Header.Set("Content-Type", "application/json")
		}
		r := &http.Response{StatusCode: x.status, Header: http.Header{}}
		if x.kind != "" {
			r.Header.Set("Content-Type", x.kind)
		}
		c.check(req, []byte(x.sent), r, []byte(x.got))
		all := strings.Join(faults, "\n")
		if (x.fault == "") != (all == "") || !strings.Contains(all, x.fault) {
			t.Errorf("%s %s %s %d %s: %q, not %q", x.method, x.path, x.sent, x.status, x.got, all, x.fault)
		}
	}
}
