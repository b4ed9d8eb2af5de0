// Package clitest is shared by the tests of the packages of the command line: files to
// read, pictures, and checks of the texts in figures.
//
// It imports the formats of files and package db, and no other package of the command
// line. Only tests import it.
package clitest
