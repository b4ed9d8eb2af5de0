// Package mcp lets assistants use a database: by tools of the Model Context Protocol, over standard input
// and output or by HTTP. The verbs mcp and serve use it; docs/MCP.md describes the tools.
//
//	s, err := mcp.New(d, mcp.Options{Write: true, Words: mcp.Programs(pool)})
//	err = s.Run(ctx, os.Stdin, os.Stdout)
//
// Tools work through the interface of package api, so the database may be a folder, the folder of another
// process, or that of a server. By HTTP (Handler) each call goes through the handler of a serve.Server, with
// the token of its request: access has one place.
//
// The SDK runs a goroutine for each call. A Server has no state but its options, and is safe for concurrent
// use. The database and the words belong to the caller.
//
// Invariants: without Options.Write there is no tool that changes anything (TestReadOnly), and by HTTP a call
// does no more than its token may (TestTokens); an answer has at most max_bytes bytes, whatever the database
// has (TestAnswersAreBounded); a call with wrong arguments gets an error of the tool that names the argument
// (TestNonsense), and a line that is no message an answer (TestLines). Text of a database is a value of JSON
// and never a part of our own sentences, but for names, which are quoted and cut.
package mcp
