// Package flags has flags that several programs take: values that go by a name, such as NAME=FILE, what
// happens to bad rows, what declares a collection, what chooses items and parts of them, and the settings of
// a training. A program that learns without a database takes the settings of fddhdb train, word for word.
//
// It checks the values of flags. A wrong value is an error of package exit. It
// reads no file and starts no goroutine.
package flags
