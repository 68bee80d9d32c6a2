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

// AssetsVariable names the environment variable with the directory of the
// programs, the one that controller-runtime's envtest reads.
const AssetsVariable = "KUBEBUILDER_ASSETS"

// Names of the programs.
const (
	etcdProgram              = "etcd"
	apiServerProgram         = "kube-apiserver"
	controllerManagerProgram = "kube-controller-manager"
	schedulerProgram         = "kube-scheduler"
	kubectlProgram           = "kubectl"
	kwokProgram              = "kwok"
)

// Assets are the programs of a control plane in a directory. The zero value
// stands for none.
type Assets struct {
	// Dir is the directory, as KUBEBUILDER_ASSETS wants it: it holds etcd,
	// kube-apiserver and kubectl. What [Build] returns also holds
	// kube-controller-manager, kube-scheduler and kwok.
	Dir string
}

// Program returns the path of a program by its name.
func (a Assets) Program(name string) string {
	return filepath.Join(a.Dir, name)
}

// check returns an error that names the programs that parts need and a lacks.
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

// programsOf lists the programs that a control plane with parts consists of.
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

// FindAssets returns the programs in the directory that KUBEBUILDER_ASSETS names,
// if it is set, and otherwise those that [Build] makes or made. It is an
// error if the directory of KUBEBUILDER_ASSETS lacks a program that parts need:
// who has chosen the programs does not want others.
func FindAssets(ctx context.Context, parts Parts, options BuildOptions) (Assets, error) {
	dir := os.Getenv(AssetsVariable)
	if dir == "" {
		return Build(ctx, options)
	}
	assets := Assets{Dir: dir}
	if err := assets.check(parts.withNeeded()); err != nil {
		return Assets{}, fmt.Errorf("using the programs that %s names: %w; unset it to have them built", AssetsVariable, err)
	}
	if options.Progress != nil {
		fmt.Fprintf(options.Progress, "using the control plane's programs in %s, which %s names\n", dir, AssetsVariable)
	}
	return assets, nil
}
