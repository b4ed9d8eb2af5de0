package db

import "context"

func (d *DB) extract(ctx context.Context, v *view, dir, collection string, indexOnly bool) error {
	return invalid("not here yet")
}
