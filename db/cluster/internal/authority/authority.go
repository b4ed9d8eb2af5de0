package authority

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// An Authority issues certificates.
type Authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey

	// File has the certificate of the authority itself, for programs that should trust it.
	File string
}

// New makes an authority of that name, with its files in a folder.
func New(dir, name string) (*Authority, error) {
	a := &Authority{dir: dir}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, err
	}
	form := template(name)
	form.IsCA, form.BasicConstraintsValid, form.KeyUsage = true, true, x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, form, form, &a.key.PublicKey, a.key)
	if err != nil {
		return nil, err
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		return nil, err
	}
	a.File, err = a.write(name+".pem", "CERTIFICATE", der)
	return a, err
}

// Issue issues a certificate for a server or a client of that name, and returns the paths of the certificate
// and its key.
func (a *Authority) Issue(name string) (cert, key string, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", "", err
	}
	form := template(name)
	form.KeyUsage = x509.KeyUsageDigitalSignature
	form.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	form.DNSNames, form.IPAddresses = []string{"localhost"},
		[]net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	der, err := x509.CreateCertificate(rand.Reader, form, a.cert, &private.PublicKey, a.key)
	if err != nil {
		return "", "", err
	}
	if cert, err = a.write(name+".pem", "CERTIFICATE", der); err != nil {
		return "", "", err
	}
	if der, err = x509.MarshalPKCS8PrivateKey(private); err != nil {
		return "", "", err
	}
	key, err = a.write(name+".key", "PRIVATE KEY", der)
	return cert, key, err
}

func template(name string) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, big.NewInt(1<<62)) // it never fails
	now := time.Now()
	return &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: now.Add(-time.Minute), NotAfter: now.Add(time.Hour)}
}

func (a *Authority) write(name, kind string, der []byte) (string, error) {
	path := filepath.Join(a.dir, name)
	return path, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}
