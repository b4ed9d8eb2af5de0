package db

import (
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/store"
)

// MarkerName is the name of the file that makes a folder a database.
const MarkerName = store.MarkerName

// The format of a database says how everything in its folder is stored. It only ever
// rises, by Upgrade: Open leaves it as it is, so that an older version of fddhdb goes on
// reading a database until somebody decides otherwise. docs/FORMAT.md has every byte.
const (
	// FormatFirst is the first format that is frozen: collections, spaces and their
	// revisions, lessons and departures.
	FormatFirst = record.FormatFirst

	// FormatIdentity gives a database a UUID, and the side file that tells which of its
	// commits are known to be durable, so that Open can say what is missing.
	FormatIdentity = record.FormatIdentity

	// MinFormat is the oldest format that this version opens.
	MinFormat = record.MinFormat

	// NewestFormat is the newest that it opens, and that of databases that it creates.
	NewestFormat = record.NewestFormat
)
