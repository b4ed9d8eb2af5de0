// Quickstart embeds a database. It stores colours with a picture (red, green, blue) and
// words, and learns codes by which words find pictures.
//
// The program imports db. TestQuickstart runs it.
package main
