// Package authority is a certificate authority for tests of TLS: it issues certificates for servers on this
// machine and for clients, and writes them and their keys to files, as NATS reads them.
//
// Invariant: a certificate is good for an hour, on loopback addresses alone, and what an Authority issues is
// trusted by nobody else.
package authority
