// Package natsproc runs a group of real NATS servers, each as a process of its own, without installing
// anything. A test can kill a server, pause it, start it again on its old data, and put a proxy between two
// of them.
//
// The executable that wants servers is also the server: natsproc starts it again with an environment variable
// that names a configuration file. Main looks for this variable, so it must come first in main or TestMain:
//
//	func TestMain(m *testing.M) {
//		natsproc.Main()
//		os.Exit(m.Run())
//	}
//
//	func TestSurvivesTheLossOfAServer(t *testing.T) {
//		g, err := natsproc.Start(t.Context(), natsproc.Config{Dir: t.TempDir(), Servers: 3})
//		...
//		defer g.Close()
//		nc, err := nats.Connect(strings.Join(g.URLs(), ","))
//		...
//		err = g.Kill(0)
//	}
//
// # What runs
//
// Every server has JetStream with sync_interval: always, so an acknowledged message is on the disks of a
// majority. Ports are on the loopback interface. Without Config.ExtraConfig anyone on this machine may
// connect.
//
// Servers of a group know each other only by the routes in their configuration. A NATS server also tells
// others the address of each new member; here that address leads nowhere, so no route ever goes around a
// proxy of Config.RouteVia.
//
// # Elections take seconds
//
// The times of NATS's Raft are constants. When a leader dies or pauses without a word, its stream elects a
// new one after 4 to 10 seconds without a heartbeat, or later if the vote is split. A leader that ends in
// good order (SIGTERM) hands over within about a second.
//
// # Ends
//
// A server lives as long as its parent: it exits when its standard input ends, which the kernel sees to even
// if the parent is killed. On Unix this holds for a paused server, too: each server is a process group of its
// own, and the kernel continues a stopped group whose last parent dies.
package natsproc
