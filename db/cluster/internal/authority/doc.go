// Package authority is a certificate authority for tests of TLS: it issues certificates for servers on this
// machine and for clients, and writes them and their keys to files, as NATS reads them.
//
// A certificate is valid for an hour, on loopback addresses alone, and only the tests trust it.
package authority
