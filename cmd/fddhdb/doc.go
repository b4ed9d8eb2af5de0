// Fddhdb is the command line of the database of the same name. Package command has the verbs;
// the packages beside it are shared by verbs. The tests of this package run whole command
// lines: the scripts of testdata/script (TestScripts), terminals (TestTerminal) and killed
// processes (TestKilledImport).
package main
