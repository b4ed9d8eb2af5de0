package serve

import (
	"net/http"
	"testing"
	"time"
)

// One request finds pairs at a time; others wait for it, and searches do not.
func TestOneJoinAtATime(t *testing.T) {
	s, _ := testServer(t, Options{Requests: 1, Timeout: 300 * time.Millisecond})
	s.joins <- struct{}{}
	const open = "/v1/photos/collections/open"
	if w := ask(s, "POST", open+":pairs", "", `{"radius":1}`); w.Code != http.StatusTooManyRequests {
		t.Errorf("beside another one: %d %s", w.Code, w.Body)
	}
	if w := ask(s, "POST", open+":search", "", `{"code":"0102"}`); w.Code != http.StatusOK {
		t.Errorf("a search: %d %s", w.Code, w.Body)
	}
	<-s.joins
	if w := ask(s, "POST", open+":groups", "", `{"radius":1}`); w.Code != http.StatusOK {
		t.Errorf("after it: %d %s", w.Code, w.Body)
	}
	if len(s.joins) != 0 {
		t.Error("the place was not given back")
	}
}
