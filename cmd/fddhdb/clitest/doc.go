// Package clitest is what the tests of the packages of the command line share: files to read,
// spaces to print, and what stands in the figures that are drawn.
//
// It imports the formats of files and package db, and no package beside it. Only tests
// import it.
package clitest
