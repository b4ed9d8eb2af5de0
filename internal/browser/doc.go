// Package browser holds the tests that look at the page of fddhdb explore in a real
// Chromium: make page. They are a module of their own, as nothing else needs what drives
// the browser.
package browser
