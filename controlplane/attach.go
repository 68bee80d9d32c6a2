// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"k8s.io/client-go/tools/clientcmd"
)

// attachFile describes a control plane to processes that attach to it.
const attachFile = "attach.json"

// An attachment is what attachFile says of a control plane, beside the files in its directory.
type attachment struct {
	Parts  Parts  `json:"parts"`
	Assets Assets `json:"assets"`
}

// Share lets other processes of the same user use the control plane: they call [Attach] with the
// directory that Share returns. It writes the key of the control plane's certificate authority into
// that directory, which only the user can read, and which Stop removes. After [StartEarly], call it
// when the control plane is [ControlPlane.Ready].
func (c *ControlPlane) Share() (dir string, err error) {
	key, err := encodeKey(c.authority.key)
	if err != nil {
		return "", fmt.Errorf("sharing the control plane: %w", err)
	}
	description, err := json.Marshal(attachment{Parts: c.options.Parts, Assets: c.options.Assets})
	if err != nil {
		return "", fmt.Errorf("sharing the control plane: %w", err)
	}
	if err := c.dir.write(map[string][]byte{authorityKeyFile: key, attachFile: description}); err != nil {
		return "", fmt.Errorf("sharing the control plane: %w", err)
	}
	return string(c.dir), nil
}

// Attach returns a control plane that another process has started, and shares in this directory;
// see [ControlPlane.Share]. It installs the CRDs of the options, replacing those of the same names,
// and returns an error if the control plane does not have their Parts. The other options are those
// with which it was started.
//
// Stop of an attached control plane stops nothing, and Err does not report that a process has ended.
func Attach(ctx context.Context, dir string, options Options) (*ControlPlane, error) {
	c := &ControlPlane{dir: directory(dir), ready: make(chan struct{}), done: make(chan struct{}), stop: func() error { return nil }}
	close(c.ready)
	if err := c.attach(options); err != nil {
		return nil, fmt.Errorf("attaching to the control plane in %s: %w", dir, err)
	}
	if len(options.CRDs) > 0 {
		if err := c.installCRDs(ctx); err != nil {
			return nil, fmt.Errorf("installing custom resource definitions: %w", err)
		}
	}
	return c, nil
}

func (c *ControlPlane) attach(options Options) error {
	description, err := os.ReadFile(c.dir.file(attachFile))
	if err != nil {
		return fmt.Errorf("is it still running? %w", err)
	}
	var found attachment
	if err := json.Unmarshal(description, &found); err != nil {
		return fmt.Errorf("reading %s: %w", attachFile, err)
	}
	if want := options.Parts.withNeeded(); !found.Parts.Has(want) {
		return fmt.Errorf("it has the parts %q and not %q", found.Parts, want)
	}
	options.Parts, options.Assets = found.Parts, found.Assets
	c.options, c.logDir = options, string(c.dir)
	if c.admin, err = clientcmd.BuildConfigFromFlags("", c.Kubeconfig()); err != nil {
		return err
	}
	c.host, c.admin.QPS, c.admin.Burst = c.admin.Host, clientQPS, clientBurst
	c.authority, err = readAuthority(c.dir)
	return err
}

// readAuthority reads the authority of a shared control plane.
func readAuthority(dir directory) (*authority, error) {
	pair, err := tls.LoadX509KeyPair(dir.file(authorityFile), dir.file(authorityKeyFile))
	if err != nil {
		return nil, err
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return nil, errors.New("the key of its certificate authority is of another kind")
	}
	certificate, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return nil, err
	}
	return &authority{certificate: certificate, key: key}, nil
}
