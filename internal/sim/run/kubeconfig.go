// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// A Kubeconfig names a cluster as --kubeconfig and --context of kubectl do. The zero value is the
// current context of $KUBECONFIG or ~/.kube/config.
type Kubeconfig struct{ File, Context string }

// Target is the cluster that a Kubeconfig names.
type Target struct {
	Config    *rest.Config
	Context   string // its name
	Namespace string // that of the context, or "default"
}

// String describes the cluster for a person.
func (t *Target) String() string { return fmt.Sprintf("context %q at %s", t.Context, t.Config.Host) }

// Load reads the files.
func (k Kubeconfig) Load() (*Target, error) {
	if _, err := os.Stat(k.File); k.File != "" && err != nil {
		return nil, fmt.Errorf("finding a cluster: %w", err)
	}
	rules, loader := k.loader()
	config, err := loader.ClientConfig()
	if clientcmd.IsEmptyConfig(err) { // the words of client-go are about KUBERNETES_MASTER
		return nil, fmt.Errorf("finding a cluster: there is no kubeconfig in %s: set KUBECONFIG, or --kubeconfig, to a file with one",
			strings.Join(rules.GetLoadingPrecedence(), ", "))
	}
	if err != nil {
		return nil, fmt.Errorf("finding a cluster: %w", err)
	}
	raw, err := loader.RawConfig()
	if err != nil {
		return nil, fmt.Errorf("finding a cluster: %w", err)
	}
	namespace, _, err := loader.Namespace()
	if err != nil {
		return nil, fmt.Errorf("finding a namespace: %w", err)
	}
	return &Target{config, cmp.Or(k.Context, raw.CurrentContext), namespace}, nil
}

func (k Kubeconfig) loader() (*clientcmd.ClientConfigLoadingRules, clientcmd.ClientConfig) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = k.File
	return rules, clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: k.Context})
}

// forOperator returns the value of KUBECONFIG for a program that knows no contexts. The file that
// it makes for one that is not the current one is removed by the returned function.
func (k Kubeconfig) forOperator() (path string, remove func() error, err error) {
	rules, loader := k.loader()
	if k.Context == "" {
		return strings.Join(rules.GetLoadingPrecedence(), string(filepath.ListSeparator)), func() error { return nil }, nil
	}
	raw, err := loader.RawConfig()
	if err != nil {
		return "", nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	dir, err := os.MkdirTemp("", "ctrlkit-run-")
	if err != nil {
		return "", nil, fmt.Errorf("making a kubeconfig for the operator: %w", err)
	}
	raw.CurrentContext = k.Context
	path = filepath.Join(dir, "kubeconfig")
	if err := clientcmd.WriteToFile(raw, path); err != nil {
		return "", nil, errors.Join(fmt.Errorf("making a kubeconfig for the operator: %w", err), os.RemoveAll(dir))
	}
	return path, func() error { return os.RemoveAll(dir) }, nil
}
