// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ctrlkit/ctrlkit/internal/scaffold"
)

func newCreateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "create",
		Short:   "Add to a project",
		Example: `  ctrlkit create api --kind Guestbook     add a kind`,
	}
	cmd.AddCommand(newCreateAPICommand())
	return cmd
}

// createFlags are the flags of "ctrlkit create api".
type createFlags struct {
	scaffoldFlags
	make bool
}

func newCreateAPICommand() *cobra.Command {
	flags := new(createFlags)
	cmd := &cobra.Command{
		Use:   "api --kind KIND",
		Short: "Add a kind, its controller and its tests to a project",
		Long: `Api adds a kind to the project in the current directory: types, a controller of steps, its tests, and a sample. The project
is one of "ctrlkit init" or of kubebuilder (go.kubebuilder.io/v4), with one API group or several.

Besides new files it changes these, at the markers of kubebuilder:

  PROJECT                              the kind
  cmd/main.go                          its types and its controller, and once operator.Observe, for metrics and explain
  config/crd/kustomization.yaml        its definition
  config/samples/kustomization.yaml    its sample
  config/rbac/metrics_reader_role.yaml the paths of ctrlkit explain and view, if there is that role
  go.mod, go.sum                       ctrlkit, and what that requires, by "go mod tidy"

Then it runs "make generate manifests", which writes the deep copies, the definition and the role.`,
		Example: `  ctrlkit create api --kind Guestbook
  ctrlkit create api --group web --version v1beta1 --kind Page --children configmap
  ctrlkit create api --kind Guestbook --dry-run     show what would be written`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error { return flags.run(cmd) },
	}
	cmd.Flags().BoolVar(&flags.make, "make", true, "run make generate manifests afterwards")
	flags.declare(cmd, "that of the project", "that of the group", "")
	return cmd
}

func (f *createFlags) run(cmd *cobra.Command) error {
	project, err := scaffold.Open(".")
	if errors.Is(err, scaffold.ErrNoProject) {
		return fmt.Errorf("%w: ctrlkit init writes a project; in one, run this in the directory of its PROJECT file", err)
	}
	if err != nil {
		return err
	}
	if err := f.names(cmd, project); err != nil {
		return err
	}
	require, err := f.requirements()
	if err != nil {
		return err
	}
	plan, err := scaffold.CreateAPI(project, f.api, require)
	if err != nil {
		return asUsage(err)
	}
	work := afterwards{make: f.make, document: f.documentDir(project)}
	_, err = f.carryOut(cmd, plan, work)
	return err
}

// names completes the names of the kind: by questions, and by what the project has.
func (f *createFlags) names(cmd *cobra.Command, p *scaffold.Project) error {
	ask := f.asker(cmd)
	ask.question(&f.api.Kind, "kind", "Kind", "", func() error { return f.api.CheckKind() })
	var groups []string
	for _, r := range p.Own() {
		if !slices.Contains(groups, r.Group) {
			groups = append(groups, r.Group)
		}
	}
	switch {
	case len(groups) == 0:
		groups = []string{strings.TrimSuffix(p.Name, "-operator")}
	case len(groups) > 1 && f.api.Group == "" && !ask.interactive:
		return &exitError{exitUsage, fmt.Errorf("--group is missing: the project has the groups %s", strings.Join(groups, ", "))}
	}
	version := func() string { // that of the group
		version := "v1"
		for _, r := range p.Own() {
			if r.Group == f.api.Group {
				version = r.Version
			}
		}
		return version
	}
	f.questions(ask, p.Domain, groups[len(groups)-1], version)
	return ask.err
}
