// Package verify reads one snapshot of a store, every record of it, and compares what stands in
// more than one place, both ways.
//
// It never imports package state: it must not trust what it checks. Records are read by package
// record, models and the codes that they give by package spaces. Folder and Locked open a store
// for reading only; Store looks at one that is open, while others read and write.
//
// What is wrong is a Finding, and no error; what follows from something that cannot be read is
// left out. A verification runs in the goroutine of its caller, with helpers that it waits for.
// db/verify_damage_test.go damages each kind of record; db/verify_sound_test.go expects nothing.
package verify
