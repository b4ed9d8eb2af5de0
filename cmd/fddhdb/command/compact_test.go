package command

import "testing"

// A second compaction does not seem to grow by files that are about to be deleted.
func TestCompactAgain(t *testing.T) {
	f := newFixture(t, 1000, false)
	var first, again compactJSON
	mustJSON(t, &first, "compact", f.db)
	mustJSON(t, &again, "compact", f.db)
	if again.BytesBefore <= 0 || again.BytesAfter <= 0 || again.BytesAfter > again.BytesBefore*3/2 || again.BytesAfter > first.BytesAfter*3/2 {
		t.Errorf("%+v, then %+v", first, again)
	}
}
