package db

import "github.com/RoaringBitmap/roaring/v2"

// unionOf returns the rows that have one of the modalities.
func unionOf(presence []*roaring.Bitmap, modalities []int) *roaring.Bitmap {
	rows := roaring.New()
	for _, t := range modalities {
		rows.Or(presence[t])
	}
	return rows
}
