// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
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
func (a Assets) check(parts Parts) error {
	missing := slices.DeleteFunc(programsOf(parts), func(name string) bool {
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
	dir := os.Getenv(AssetsVariable)
	if dir == "" {
		return Build(ctx, options)
	}
	assets := Assets{Dir: dir}
	if err := assets.check(parts.withNeeded()); err != nil {
		return Assets{}, fmt.Errorf("using the programs in %s: %w; unset it to have them built", AssetsVariable, err)
	}
	if options.Progress != nil {
		fmt.Fprintf(options.Progress, "using the control plane's programs in %s, which %s names\n", dir, AssetsVariable)
	}
	return assets, nil
}
