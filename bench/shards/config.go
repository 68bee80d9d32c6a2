// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// newRing returns the ring: Widgets, and their children.
func newRing() *unstructured.Unstructured {
	controlled := []any{}
	for _, resource := range []string{"configmaps", "secrets", "services"} {
		controlled = append(controlled, map[string]any{"group": "", "resource": resource})
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "sharding.timebertt.dev/v1alpha1", "kind": "ControllerRing",
		"metadata": map[string]any{"name": ring},
		"spec": map[string]any{"resources": []any{
			map[string]any{"group": "bench.ctrlkit.dev", "resource": "widgets", "controlledResources": controlled},
		}},
	}}
}

// kubeconfigOf writes the credentials of a user who may do everything, by whose name the audit log
// knows it.
func (t *trial) kubeconfigOf(name string) (file string, err error) {
	user, err := t.plane.AddUser(name, "system:masters")
	if err != nil {
		return "", err
	}
	k := clientcmdapi.NewConfig()
	k.Clusters["c"] = &clientcmdapi.Cluster{Server: user.Host, CertificateAuthorityData: user.CAData}
	k.AuthInfos["c"] = &clientcmdapi.AuthInfo{ClientCertificateData: user.CertData, ClientKeyData: user.KeyData}
	k.Contexts["c"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "c"}
	k.CurrentContext = "c"
	file = filepath.Join(t.dir, name+".kubeconfig")
	return file, clientcmd.WriteToFile(*k, file)
}

// sharderConfig writes the configuration of the sharder, and the certificate of its webhook.
func (t *trial) sharderConfig() (file string, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(240 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return "", err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return "", err
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
	config := fmt.Sprintf(`apiVersion: config.sharding.timebertt.dev/v1alpha1
kind: SharderConfig
health:
  bindAddress: "0"
metrics:
  bindAddress: "0"
webhook:
  server:
    certDir: %s
    certName: tls.crt
    keyName: tls.key
  config:
    clientConfig:
      url: https://127.0.0.1:9443/
      caBundle: %s
`, t.dir, base64.StdEncoding.EncodeToString(certificate))
	file = filepath.Join(t.dir, "sharder.yaml")
	for name, content := range map[string][]byte{
		file: []byte(config), filepath.Join(t.dir, "tls.crt"): certificate,
		filepath.Join(t.dir, "tls.key"): pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			return "", err
		}
	}
	return file, nil
}
