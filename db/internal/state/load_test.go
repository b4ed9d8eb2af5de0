package state

import (
	"errors"
	"testing"
)

// Loading, which leaves the first moments after opening to searches, hears of those
// who wait for it, be they one or many.
func TestLoadingHearsOfWaiters(t *testing.T) {
	l := newLoading()
	waiting := make(chan error)
	for range 3 {
		go func() { waiting <- l.wait(t.Context()) }()
	}
	<-l.wanted
	injected := errors.New("injected")
	l.err = injected
	close(l.done)
	for range 3 {
		if err := <-waiting; !errors.Is(err, injected) {
			t.Error(err)
		}
	}
}
