package codec

import "fmt"

// A VersionError is about a record of a version that this package does not know. A
// newer release may have written it, or it may be damage, so it is also an ErrCorrupt:
// only a reader that knows the format of the whole database can tell which.
type VersionError struct {
	What          string // kind of record
	Found, Newest int
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("%v: %s: version %d, the newest known is %d", ErrCorrupt, e.What, e.Found, e.Newest)
}

// Is makes errors.Is(err, ErrCorrupt) true for a VersionError.
func (e *VersionError) Is(target error) bool { return target == ErrCorrupt }

// checkVersion checks the first byte of a record with one known version. Versions rise
// one by one, so a number far off is damage.
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
