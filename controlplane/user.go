// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"fmt"
	"maps"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// kubeconfigName is what the cluster, the user and the context are called in kubeconfig files.
const kubeconfigName = "ctrlkit"

// Config returns how to reach the API server as an administrator. Each call
// returns a copy, which the caller may change. Clients made with it are not
// slowed down as they would be by default.
func (c *ControlPlane) Config() *rest.Config {
	return rest.CopyConfig(c.admin)
}

// client returns an administrator's client for this package's own requests. It
// logs nothing: controller-runtime would complain at length where no logger was set.
func (c *ControlPlane) client() (client.Client, error) {
	config := c.Config()
	config.WarningHandler = rest.NoWarnings{}
	return client.New(config, client.Options{Log: logr.New(log.NullLogSink{})})
}

// Kubeconfig returns the path of a kubeconfig file for an administrator, for use
// with kubectl. The file goes with the control plane.
func (c *ControlPlane) Kubeconfig() string {
	return c.dir.file(kubeconfigFile)
}

// AddUser returns how to reach the API server as a user with the given name and
// groups. It may do what RBAC allows it, which is nothing much until the
// user is bound to a role; the group system:masters may do everything.
func (c *ControlPlane) AddUser(name string, groups ...string) (*rest.Config, error) {
	pair, err := c.authority.issueClient(name, groups)
	if err != nil {
		return nil, fmt.Errorf("adding user %q: %w", name, err)
	}
	return &rest.Config{
		Host: fmt.Sprintf("https://127.0.0.1:%d", c.port.number),
		TLSClientConfig: rest.TLSClientConfig{
			CAData:   c.authority.bundle(),
			CertData: pair.certificate,
			KeyData:  pair.key,
		},
		QPS:   1000,
		Burst: 2000,
	}, nil
}

// WriteKubeconfig adds the control plane to a kubeconfig file, which need not
// exist, under the name ctrlkit, and makes it the current context. The returned
// function takes it out again, restores the current context, and removes the
// file if it did not exist before; what others changed meanwhile remains.
func (c *ControlPlane) WriteKubeconfig(file string) (restore func() error, err error) {
	before, err := clientcmd.LoadFromFile(file)
	existed := !errors.Is(err, os.ErrNotExist)
	if !existed {
		before = clientcmdapi.NewConfig()
	} else if err != nil {
		return nil, fmt.Errorf("reading kubeconfig %s: %w", file, err)
	}
	merged := before.DeepCopy()
	ours := kubeconfigFor(c.admin)
	maps.Copy(merged.Clusters, ours.Clusters)
	maps.Copy(merged.AuthInfos, ours.AuthInfos)
	maps.Copy(merged.Contexts, ours.Contexts)
	merged.CurrentContext = ours.CurrentContext
	if err := clientcmd.WriteToFile(*merged, file); err != nil {
		return nil, fmt.Errorf("writing kubeconfig %s: %w", file, err)
	}
	return func() error {
		if err := removeFromKubeconfig(file, before, c.admin.Host); err != nil {
			return fmt.Errorf("restoring kubeconfig %s: %w", file, err)
		}
		return nil
	}, nil
}

// removeFromKubeconfig removes what points to host under our name and puts back
// what before had there.
func removeFromKubeconfig(file string, before *clientcmdapi.Config, host string) error {
	now, err := clientcmd.LoadFromFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if cluster := now.Clusters[kubeconfigName]; cluster == nil || cluster.Server != host {
		return nil // somebody else's by now
	}
	putBack(now.Clusters, before.Clusters)
	putBack(now.AuthInfos, before.AuthInfos)
	putBack(now.Contexts, before.Contexts)
	if now.CurrentContext == kubeconfigName {
		now.CurrentContext = before.CurrentContext
	}
	if len(now.Clusters)+len(now.AuthInfos)+len(now.Contexts) == 0 {
		return os.Remove(file)
	}
	return clientcmd.WriteToFile(*now, file)
}

func putBack[T any](now, before map[string]T) {
	if entry, had := before[kubeconfigName]; had {
		now[kubeconfigName] = entry
		return
	}
	delete(now, kubeconfigName)
}

func kubeconfigOf(config *rest.Config) ([]byte, error) {
	content, err := clientcmd.Write(*kubeconfigFor(config))
	if err != nil {
		return nil, fmt.Errorf("writing its kubeconfig: %w", err)
	}
	return content, nil
}

func kubeconfigFor(config *rest.Config) *clientcmdapi.Config {
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters[kubeconfigName] = &clientcmdapi.Cluster{
		Server:                   config.Host,
		CertificateAuthorityData: config.CAData,
	}
	kubeconfig.AuthInfos[kubeconfigName] = &clientcmdapi.AuthInfo{
		ClientCertificateData: config.CertData,
		ClientKeyData:         config.KeyData,
	}
	kubeconfig.Contexts[kubeconfigName] = &clientcmdapi.Context{Cluster: kubeconfigName, AuthInfo: kubeconfigName}
	kubeconfig.CurrentContext = kubeconfigName
	return kubeconfig
}
