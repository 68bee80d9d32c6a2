// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"fmt"
	"os"
	"path/filepath"
)

// socketName is the name of the socket at which the operator of a run serves what "ctrlkit explain"
// reads, and its page: beside the kubeconfig file of the run, in a directory of the user alone.
const socketName = "ctrlkit-operator.sock"

// placeSocket chooses the place of the socket. A cluster that was there has no directory of the run.
func (r *runner) placeSocket() (err error) {
	if r.plane != nil {
		r.socket = filepath.Join(filepath.Dir(r.plane.Kubeconfig()), socketName)
		return nil
	}
	if r.socketDir, err = os.MkdirTemp("", "ctrlkit-run-"); err != nil {
		return fmt.Errorf("making a directory for the socket of the operator: %w", err)
	}
	r.socket = filepath.Join(r.socketDir, socketName)
	r.steps.remark("explain", "export CTRLKIT_ENDPOINT="+socketEndpoint(r.socket))
	return nil
}

func socketEndpoint(path string) string { return "unix://" + path }

// Endpoint returns where the operator of a run serves, if the kubeconfig file is that of the run, and
// an empty text if it is not.
func (k Kubeconfig) Endpoint() string {
	rules, _ := k.loader()
	for _, file := range rules.GetLoadingPrecedence() {
		dir := filepath.Dir(file)
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm()&0o077 != 0 {
			continue // others may have put the socket there
		}
		path := filepath.Join(dir, socketName)
		if info, err := os.Stat(path); err == nil && info.Mode()&os.ModeSocket != 0 {
			return socketEndpoint(path)
		}
	}
	return ""
}
