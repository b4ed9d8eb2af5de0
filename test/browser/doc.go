// Package browser holds the tests that look at the page of fddhdb explore in a real
// Chromium: make page. They are a module of their own, because nothing else needs the
// library that drives the browser.
//
// The package has tests alone. They run the built shell as a process, and each test a
// browser of its own. They import package db to store what the page has to show. Without
// the environment variable CHROMIUM they are skipped. TestFootprint proves the limits of
// size and time, TestHostileItems that stored text never runs, TestViews that the page is
// accessible.
package browser
