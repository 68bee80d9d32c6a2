// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// AssetsVariable is the environment variable with the directory of the programs. It is the one that
// controller-runtime's envtest reads.
const AssetsVariable = "KUBEBUILDER_ASSETS"

// The names of the programs.
const (
	etcdProgram              = "etcd"
	apiServerProgram         = "kube-apiserver"
	controllerManagerProgram = "kube-controller-manager"
	schedulerProgram         = "kube-scheduler"
	kubectlProgram           = "kubectl"
	kwokProgram              = "kwok"
)

// Assets are the programs of a control plane. The zero value means that they are not known.
type Assets struct {
	// Dir is the directory of the programs, as in KUBEBUILDER_ASSETS. It has etcd, kube-apiserver
	// and kubectl. The result of [Build] also has kube-controller-manager, kube-scheduler and kwok.
	Dir string
}

// Program returns the path of a program by its name.
func (a Assets) Program(name string) string {
	return filepath.Join(a.Dir, name)
}

// check returns an error if the directory lacks programs that parts need.
func (a Assets) check(parts Parts) error { return a.lack(programsOf(parts)) }

// lack returns an error if the directory lacks some of the programs.
func (a Assets) lack(programs []string) error {
	missing := slices.DeleteFunc(slices.Clone(programs), func(name string) bool {
		info, err := os.Stat(a.Program(name))
		return err == nil && info.Mode().IsRegular()
	})
	if len(missing) > 0 {
		return fmt.Errorf("directory %q lacks %s", a.Dir, strings.Join(missing, ", "))
	}
	return nil
}

// programsOf returns the names of the programs of a control plane with parts.
func programsOf(parts Parts) []string {
	programs := []string{etcdProgram, apiServerProgram}
	if parts.Has(PartControllerManager) {
		programs = append(programs, controllerManagerProgram)
	}
	if parts.Has(PartScheduler) {
		programs = append(programs, schedulerProgram)
	}
	if parts.Has(PartNodes) {
		programs = append(programs, kwokProgram)
	}
	return programs
}

// FindAssets returns the programs in the directory KUBEBUILDER_ASSETS, if that is set, and
// otherwise those of [Build]. It returns an error if the directory lacks a program that parts need:
// it does not replace programs that the user has chosen.
func FindAssets(ctx context.Context, parts Parts, options BuildOptions) (Assets, error) {
	assets, rest, err := findServers(ctx, parts.withNeeded(), options.Progress)
	if err == nil && rest != nil {
		err = rest(ctx)
	}
	if err != nil {
		return Assets{}, err
	}
	return assets, nil
}

// findServers is FindAssets, but leaves programs other than etcd and kube-apiserver to rest, which
// is nil if there is nothing to build.
func findServers(ctx context.Context, parts Parts, progress io.Writer) (assets Assets, rest func(context.Context) error, err error) {
	if dir := os.Getenv(AssetsVariable); dir != "" {
		assets = Assets{Dir: dir}
		if err := assets.check(parts); err != nil {
			return Assets{}, nil, fmt.Errorf("using the programs in %s: %w; unset it to have them built", AssetsVariable, err)
		}
		if progress != nil {
			fmt.Fprintf(progress, "using the control plane's programs in %s, which %s names\n", dir, AssetsVariable)
		}
		return assets, nil, nil
	}
	b, err := newBuilder(ctx, progress)
	if err != nil {
		return Assets{}, nil, err
	}
	if err := b.build(ctx, servers); err != nil {
		return Assets{}, nil, err
	}
	if b.assets.lack(clients.programs()) == nil {
		return b.assets, nil, nil
	}
	return b.assets, func(ctx context.Context) error { return b.build(ctx, clients) }, nil
}
