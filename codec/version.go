package codec

import "fmt"

// A VersionError is about a record of a version that this package does not know, which a
// newer release may have written. It is an ErrCorrupt, too: only whoever knows the format of
// the whole database can tell.
type VersionError struct {
	What          string // the kind of record
	Found, Newest int
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("%v: %s: version %d, the newest known is %d", ErrCorrupt, e.What, e.Found, e.Newest)
}

// Is makes a VersionError an ErrCorrupt.
func (e *VersionError) Is(target error) bool { return target == ErrCorrupt }

// checkVersion checks the first byte of a record of which there is one version. Versions
// rise one by one: what is far off is damage.
func checkVersion(b []byte, what string, known byte) error {
	const far = 16
	switch {
	case len(b) > 0 && b[0] == known:
		return nil
	case len(b) > 0 && b[0] > known && b[0] < known+far:
		return &VersionError{What: what, Found: int(b[0]), Newest: int(known)}
	}
	return fmt.Errorf("%w: %s: do not start with version %d", ErrCorrupt, what, known)
}
