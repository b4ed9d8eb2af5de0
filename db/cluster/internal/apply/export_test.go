package apply

import (
	"context"
	"fmt"
)

// Digest is a digest of all that the database has now.
func (s *State) Digest(ctx context.Context) (string, error) {
	snap, err := s.DB.Snapshot()
	if err != nil {
		return "", err
	}
	defer snap.Close()
	names, err := s.DB.Collections()
	if err != nil {
		return "", err
	}
	all, err := digests(ctx, names, snap, true)
	return fmt.Sprintf("%x", all), err
}
