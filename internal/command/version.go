// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// controlPlaneVersion is the version of Kubernetes that the module controlplane/kubernetes builds.
const controlPlaneVersion = "v1.37.2"

// versions is the output of "ctrlkit version". Its JSON form is stable.
type versions struct {
	Version           string `json:"version"`
	Commit            string `json:"commit,omitempty"`
	Go                string `json:"go"`
	Platform          string `json:"platform"`
	Kubernetes        string `json:"kubernetes"` // of the client libraries
	ControllerRuntime string `json:"controllerRuntime"`
	ControlPlane      string `json:"controlPlane"` // of the API server that "ctrlkit run" starts
}

func newVersionCommand() *cobra.Command {
	var output *choice
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of ctrlkit, of Go and of Kubernetes",
		Example: `  ctrlkit version
  ctrlkit version -o json`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return printVersions(cmd.OutOrStdout(), currentVersions(), output.value)
		},
	}
	output = outputFlag(cmd, "text", "json")
	output.alsoAs(cmd, "format")
	return cmd
}

// currentVersions returns the versions of this program.
func currentVersions() versions {
	info, _ := debug.ReadBuildInfo() // nil if there is none
	return versionsFrom(info)
}

// versionsFrom returns the versions that the linker recorded. If info is nil, they are "unknown".
func versionsFrom(info *debug.BuildInfo) versions {
	v := versions{
		Version:           "unknown",
		Go:                runtime.Version(),
		Platform:          runtime.GOOS + "/" + runtime.GOARCH,
		Kubernetes:        "unknown",
		ControllerRuntime: "unknown",
		ControlPlane:      controlPlaneVersion,
	}
	if info == nil {
		return v
	}
	v.Version = info.Main.Version
	if v.Version == "" || v.Version == "(devel)" {
		v.Version = "development"
	}
	dirty := false
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			v.Commit = setting.Value
		case "vcs.modified":
			dirty = setting.Value == "true"
		}
	}
	if v.Commit != "" && dirty {
		v.Commit += " with uncommitted changes"
	}
	for _, dep := range info.Deps {
		switch dep.Path {
		case "k8s.io/client-go":
			// Kubernetes 1.37.2 publishes its libraries as v0.37.2.
			v.Kubernetes = "v1" + strings.TrimPrefix(dep.Version, "v0")
		case "sigs.k8s.io/controller-runtime":
			v.ControllerRuntime = dep.Version
		}
	}
	return v
}

func printVersions(w io.Writer, v versions, format string) error {
	if format == "json" {
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return encoder.Encode(v)
	}
	version := v.Version
	if v.Commit != "" {
		version += " (" + v.Commit + ")"
	}
	_, err := fmt.Fprintf(w, "ctrlkit             %s\nGo                  %s %s\nKubernetes library  %s\ncontroller-runtime  %s\ncontrol plane       %s\n",
		version, v.Go, v.Platform, v.Kubernetes, v.ControllerRuntime, v.ControlPlane)
	return err
}
