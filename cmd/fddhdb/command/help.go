package command

// Groups in which help lists the verbs.
const (
	groupItems  = "items"
	groupLearn  = "learn"
	groupSpaces = "spaces"
	groupLook   = "look"
	groupBackup = "backup"
	groupOther  = "other"
)
