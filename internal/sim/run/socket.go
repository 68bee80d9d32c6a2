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

// A servedAt is the socket of a run.
type servedAt struct {
	path string
	made string // the directory that was made for it, if one was
}

// newSocket chooses the place of the socket, and makes a directory for it, and says so, if the cluster p
// was there before the run.
func newSocket(p plane, say *steps) (s servedAt, err error) {
	if p != nil {
		return servedAt{path: filepath.Join(filepath.Dir(p.Kubeconfig()), socketName)}, nil
	}
	if s.made, err = os.MkdirTemp("", "ctrlkit-run-"); err != nil {
		return s, fmt.Errorf("making a directory for the socket of the operator: %w", err)
	}
	s.path = filepath.Join(s.made, socketName)
	say.remark("explain", "export CTRLKIT_ENDPOINT="+s.endpoint())
	return s, nil
}

// endpoint returns the address of the socket, as "ctrlkit explain" takes it.
func (s servedAt) endpoint() string { return "unix://" + s.path }

// remove removes the directory that was made for the socket.
func (s servedAt) remove() { _ = os.RemoveAll(s.made) } // no error without one

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
			return servedAt{path: path}.endpoint()
		}
	}
	return ""
}
