package codec

import "fmt"

// A FormatError is a model, its statistics or a revision in another format than this version reads.
type FormatError struct {
	What             string // what was read
	Found, Supported int    // its format, and the one that this version reads
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("%s has format %d, this version reads format %d alone: use the version that has written it", e.What, e.Found, e.Supported)
}
