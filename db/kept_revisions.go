package db

// keptRevisions is how many revisions are kept besides the first one and those that are
// pinned, the present one included.
const keptRevisions = 8
