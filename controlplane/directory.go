// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"
	"os"
	"path/filepath"
)

// The files in the directory of a control plane.
const (
	authorityFile         = "ca.crt"
	authorityKeyFile      = "ca.key" // only of a shared control plane
	servingFile           = "serving.crt"
	servingKeyFile        = "serving.key"
	serviceAccountKeyFile = "service-accounts.key"
	kubeconfigFile        = "kubeconfig"
	stagesFile            = "stages.yaml"
	etcdSocket            = "etcd.sock"
)

// A directory holds the files of one control plane: keys, certificates, sockets, and etcd's data.
type directory string

// newDirectory creates an empty directory, which is removed with the control plane.
func newDirectory() (directory, error) {
	dir, err := os.MkdirTemp("", "ctrlkit-")
	if err != nil {
		return "", fmt.Errorf("creating its directory: %w", err)
	}
	return directory(dir), nil
}

// ensureLogDirectory creates the directory for logs, and those above it, unless it exists.
func ensureLogDirectory(dir string) error {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return fmt.Errorf("the directory for logs %s is a file: name another one, or move the file away", dir)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("creating the directory for logs: %w", err)
	}
	return nil
}

// file returns the path of a file in the directory.
func (d directory) file(name string) string {
	return filepath.Join(string(d), name)
}

// write writes files, by name. Only the user who runs the control plane may read them.
func (d directory) write(files map[string][]byte) error {
	for name, content := range files {
		if err := os.WriteFile(d.file(name), content, 0o600); err != nil {
			return fmt.Errorf("writing its files: %w", err)
		}
	}
	return nil
}

// remove removes the directory and all it holds.
func (d directory) remove() error {
	if err := os.RemoveAll(string(d)); err != nil {
		return fmt.Errorf("removing the control plane's directory: %w", err)
	}
	return nil
}
