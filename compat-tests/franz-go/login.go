package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

type login struct {
	Mechanism   *string `json:"mechanism"`
	User        string  `json:"user"`
	Password    string  `json:"password"`
	Ca          string  `json:"ca"`
	Certificate *string `json:"certificate"`
	Key         *string `json:"key"`
}

// options of a client that uses TLS and logs in; none of one that does not.
func (l *login) options() ([]kgo.Opt, error) {
	if l == nil {
		return nil, nil
	}
	trusted, err := os.ReadFile(l.Ca)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	config.RootCAs.AppendCertsFromPEM(trusted)
	if l.Certificate != nil {
		pair, err := tls.LoadX509KeyPair(*l.Certificate, *l.Key)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	options := []kgo.Opt{kgo.DialTLSConfig(config)}
	if l.Mechanism == nil {
		return options, nil
	}
	switch *l.Mechanism {
	case "PLAIN":
		return append(options, kgo.SASL(plain.Auth{User: l.User, Pass: l.Password}.AsMechanism())), nil
	case "SCRAM-SHA-256":
		return append(options, kgo.SASL(scram.Auth{User: l.User, Pass: l.Password}.AsSha256Mechanism())), nil
	case "SCRAM-SHA-512":
		return append(options, kgo.SASL(scram.Auth{User: l.User, Pass: l.Password}.AsSha512Mechanism())), nil
	}
	return nil, fmt.Errorf("no mechanism %s", *l.Mechanism)
}
