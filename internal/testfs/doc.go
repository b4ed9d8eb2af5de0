// Package testfs is for tests that need a disk to fail or a file to be damaged. It has file
// systems that are full or refuse, functions that read, write and damage files, and real disks
// of a test's own, where it may mount some.
//
// It imports the standard library and Pebble's vfs. A SmallDisk guards its fields with a
// mutex; the functions keep no state.
package testfs
