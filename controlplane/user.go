// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ctrlkit/ctrlkit/internal/cluster/private"
)

// kubeconfigName is the name of the cluster, the user and the context in kubeconfig files.
const kubeconfigName = "ctrlkit"

// The rate limits of clients, far above the defaults.
const (
	clientQPS   = 1000
	clientBurst = 2000
)

// Config returns the configuration of an administrator. Each call returns a copy, which the caller
// may change. Its rate limits are far above the defaults.
func (c *ControlPlane) Config() *rest.Config {
	return rest.CopyConfig(c.admin)
}

// client returns an administrator's client for the requests of this package. It does not log,
// because controller-runtime warns at length if no logger was set.
func (c *ControlPlane) client() (client.Client, error) {
	config := c.Config()
	config.WarningHandler = rest.NoWarnings{}
	return client.New(config, client.Options{Log: logr.New(log.NullLogSink{})})
}

// Kubeconfig returns the path of a kubeconfig file for an administrator. Stop removes the file.
func (c *ControlPlane) Kubeconfig() string {
	return c.dir.file(kubeconfigFile)
}

// AddUser returns the configuration of a user with the given name and groups. RBAC decides what the
// user may do: hardly anything without a role binding, and everything in the group system:masters.
func (c *ControlPlane) AddUser(name string, groups ...string) (*rest.Config, error) {
	pair, err := c.authority.issueClient(name, groups)
	if err != nil {
		return nil, fmt.Errorf("adding user %q: %w", name, err)
	}
	return &rest.Config{
		Host: c.host,
		TLSClientConfig: rest.TLSClientConfig{
			CAData:   c.authority.bundle(),
			CertData: pair.certificate,
			KeyData:  pair.key,
		},
		QPS:   clientQPS,
		Burst: clientBurst,
	}, nil
}

// WriteKubeconfig adds the control plane to a kubeconfig file under the name ctrlkit, and makes it
// the current context. It creates the file if necessary. The returned function removes the control
// plane from the file, restores the current context, and removes the file if WriteKubeconfig
// created it. It keeps the changes that others have made in between.
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
	if err := writeKubeconfig(merged, file); err != nil {
		return nil, fmt.Errorf("writing kubeconfig %s: %w", file, err)
	}
	return func() error {
		if err := removeFromKubeconfig(file, before, c.admin.Host); err != nil {
			return fmt.Errorf("restoring kubeconfig %s: %w", file, err)
		}
		return nil
	}, nil
}

// removeFromKubeconfig removes the entries for host under kubeconfigName, and restores those in
// before.
func removeFromKubeconfig(file string, before *clientcmdapi.Config, host string) error {
	now, err := clientcmd.LoadFromFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if cluster := now.Clusters[kubeconfigName]; cluster == nil || cluster.Server != host {
		return nil // another control plane has replaced the entry
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
	return writeKubeconfig(now, file)
}

// writeKubeconfig writes a file of the user, who may keep it elsewhere behind a link.
func writeKubeconfig(config *clientcmdapi.Config, file string) error {
	content, err := clientcmd.Write(*config)
	if err != nil {
		return err
	}
	if linked, err := filepath.EvalSymlinks(file); err == nil {
		file = linked
	}
	return private.Write(file, content)
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
