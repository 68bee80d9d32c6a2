// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// kubeconfigName is the name of the cluster, the user and the context in the kubeconfig file.
const kubeconfigName = "ctrlkit-memory"

// validity is the lifetime of the certificate, longer than that of a cluster.
const validity = 365 * 24 * time.Hour

// credentials are those of one cluster: the certificate of the server, and the token of its only user.
// Without the token, every program of the machine could use the cluster.
type credentials struct {
	certificate tls.Certificate
	pem         []byte // of the certificate
	token       string
}

func newCredentials() (*credentials, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("creating the key of the server: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("choosing a serial number: %w", err)
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "localhost"}, NotBefore: now.Add(-time.Minute), NotAfter: now.Add(validity),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IsCA: true, BasicConstraintsValid: true,
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("creating the certificate of the server: %w", err)
	}
	return &credentials{
		certificate: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key},
		pem:         pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		token:       rand.Text(),
	}, nil
}

func (c *credentials) serverTLS() *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{c.certificate}, MinVersion: tls.VersionTLS12}
}

func (c *credentials) config(host string) *rest.Config {
	return &rest.Config{Host: host, BearerToken: c.token, TLSClientConfig: rest.TLSClientConfig{CAData: c.pem}, QPS: 1000, Burst: 2000}
}

// guard refuses requests without the token, or one that the server has issued to a ServiceAccount.
// authenticate returns whose token one is, or nil.
func (c *credentials) guard(next http.Handler, authenticate func(token string) user.Info) http.Handler {
	want := []byte("Bearer " + c.token)
	status := apierrors.NewUnauthorized("Unauthorized").Status()
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	refusal, err := json.Marshal(status)
	if err != nil {
		panic(err) // plain fields
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := r.Header.Get("Authorization")
		if subtle.ConstantTimeCompare([]byte(header), want) == 1 {
			next.ServeHTTP(w, r)
			return
		}
		token, _ := strings.CutPrefix(header, "Bearer ")
		account := authenticate(token)
		if account == nil {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write(refusal) //nolint:errcheck // the client is gone
			return
		}
		next.ServeHTTP(w, asUser(r, account))
	})
}

// asUser returns a request as one of a user. The server reads users from the headers for
// impersonation, so that one which impersonates another user stays as it is.
func asUser(r *http.Request, who user.Info) *http.Request {
	if r.Header.Get("Impersonate-User") != "" {
		return r
	}
	r = r.Clone(r.Context())
	r.Header.Set("Impersonate-User", who.GetName())
	r.Header.Set("Impersonate-Uid", who.GetUID())
	r.Header["Impersonate-Group"] = who.GetGroups()
	return r
}

// Config returns the configuration of the cluster's only user, who may do everything. Each call returns
// a copy, which the caller may change. Its rate limits are far above the defaults.
func (c *Cluster) Config() *rest.Config { return rest.CopyConfig(c.config) }

// Kubeconfig returns the path of a kubeconfig file for that user. Stop removes the file.
func (c *Cluster) Kubeconfig() string { return filepath.Join(c.dir, "kubeconfig") }

func writeKubeconfig(config *rest.Config, file string) error {
	k := clientcmdapi.NewConfig()
	k.Clusters[kubeconfigName] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	k.AuthInfos[kubeconfigName] = &clientcmdapi.AuthInfo{Token: config.BearerToken}
	k.Contexts[kubeconfigName] = &clientcmdapi.Context{Cluster: kubeconfigName, AuthInfo: kubeconfigName}
	k.CurrentContext = kubeconfigName
	if err := clientcmd.WriteToFile(*k, file); err != nil {
		return fmt.Errorf("writing the kubeconfig file: %w", err)
	}
	return nil
}
