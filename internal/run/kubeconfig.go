// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"fmt"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// LoadKubeconfig reads files, whose paths are separated as in KUBECONFIG, and describes the cluster
// for a person.
func LoadKubeconfig(paths string) (config *rest.Config, where string, err error) {
	rules := &clientcmd.ClientConfigLoadingRules{Precedence: filepath.SplitList(paths)}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil)
	if config, err = loader.ClientConfig(); err != nil {
		return nil, "", fmt.Errorf("reading the kubeconfig %s: %w", paths, err)
	}
	raw, err := loader.RawConfig()
	if err != nil {
		return nil, "", fmt.Errorf("reading the kubeconfig %s: %w", paths, err)
	}
	return config, fmt.Sprintf("context %q at %s", raw.CurrentContext, config.Host), nil
}
