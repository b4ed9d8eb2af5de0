// Package testfs is for tests that need a disk to fail or a file to be damaged: file systems
// that are full or refuse, and functions that read, write and flip what is in a file.
package testfs
