// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ctrlkit/ctrlkit/internal/scaffold"
)

// initFlags are the flags of "ctrlkit init".
type initFlags struct {
	scaffoldFlags
	name, domain, repo string
}

func newInitCommand() *cobra.Command {
	flags := new(initFlags)
	cmd := &cobra.Command{
		Use:   "init [DIRECTORY]",
		Short: "Write an operator that builds, runs and passes its tests",
		Long: `Init writes an operator with one kind into DIRECTORY, by default the current one: module, types, controller, program,
manifests, Dockerfile, CI, and tests of three sorts (of a step, of the operator under every fault, and on a real control
plane). It then runs "go mod tidy".

The layout is kubebuilder's (go.kubebuilder.io/v4), so that "ctrlkit create api" and "kubebuilder create api" add further
kinds. To add a kind to a project that exists, use that command alone.

In a terminal, init asks for the names that no flag gives. A file that exists with another content is never overwritten
without --force. Init again changes nothing.`,
		Example: `  ctrlkit init guestbook                                  an operator of the kind Guestbook
  ctrlkit init --domain example.org --repo github.com/example/shop --kind Shop
  ctrlkit init guestbook --children configmap             each object keeps a ConfigMap, not a Deployment
  ctrlkit init buckets --kind Bucket --children external  each object stands for a resource outside the cluster
  ctrlkit init guestbook --dry-run                        show what would be written`,
		Args: arguments(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := "."
			if len(args) > 0 {
				dir = args[0]
			}
			return flags.run(cmd, dir)
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
	}
	set := cmd.Flags()
	set.StringVar(&flags.domain, "domain", "", "the `DOMAIN` that the API groups end in (default example.com)")
	set.StringVar(&flags.repo, "repo", "", "the `PATH` of the Go module (default that of go.mod, or DOMAIN/NAME)")
	set.StringVar(&flags.name, "project-name", "", "the `NAME` that the manifests begin with (default that of the directory)")
	flags.declare(cmd, "that of the project, without -operator", "v1", "that of the project, without -operator, in CamelCase")
	return cmd
}

func (f *initFlags) run(cmd *cobra.Command, dir string) error {
	project, err := f.project(cmd, dir)
	if err != nil {
		return err
	}
	require, err := f.requirements()
	if err != nil {
		return err
	}
	plan, err := f.plan(project, require)
	if err != nil {
		return asUsage(err)
	}
	work := afterwards{document: f.documentDir(project)}
	done, err := f.carryOut(cmd, plan, work)
	if err != nil || !done {
		return err
	}
	fmt.Fprint(cmd.ErrOrStderr(), "\nNext:\n")
	if dir != "." {
		fmt.Fprintf(cmd.ErrOrStderr(), "  cd %s\n", dir)
	}
	fmt.Fprint(cmd.ErrOrStderr(), `  ctrlkit run --on memory ./cmd     run it, with config/samples
  go test ./...                     test it, under every fault
`)
	return nil
}

// project completes the names: by the project that is there, by questions, and by defaults.
func (f *initFlags) project(cmd *cobra.Command, dir string) (*scaffold.Project, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	ask := f.asker(cmd)
	there, err := existingProject(dir)
	if err != nil {
		return nil, err
	}
	if there != nil {
		f.instead = fmt.Sprintf("\n%s is a project already. To add a kind to it, use ctrlkit create api in it instead", dir)
		return there, f.again(there)
	}
	f.name = fallback(f.name, label(filepath.Base(abs)))
	short := strings.TrimSuffix(f.name, "-operator")
	p := &scaffold.Project{Dir: dir, Name: f.name}
	checkDomain := func() error { p.Domain = f.domain; return p.CheckDomain() }
	ask.question(&f.api.Kind, "kind", "Kind", scaffold.CamelCase(short), func() error { return f.api.CheckKind() })
	ask.question(&f.domain, "domain", "Domain of the API group", "example.com", checkDomain)
	f.questions(ask, f.domain, short, func() string { return "v1" })
	module, err := scaffold.ModulePath(dir)
	if err != nil {
		return nil, err
	}
	ask.question(&f.repo, "repo", "Go module", fallback(module, f.domain+"/"+f.name), func() error { p.Repo = f.repo; return p.CheckRepo() })
	p.Domain, p.Repo = f.domain, f.repo
	return p, ask.err
}

// existingProject returns the project in a directory, nil if there is none.
func existingProject(dir string) (*scaffold.Project, error) {
	if _, err := os.Stat(filepath.Join(dir, "PROJECT")); os.IsNotExist(err) {
		return nil, nil
	}
	return scaffold.Open(dir)
}

// again takes the names of a project that is there. Those that flags give must be the same.
func (f *initFlags) again(p *scaffold.Project) error {
	own := p.Own()
	if len(own) == 0 {
		return fmt.Errorf("%s is a project already, without a kind: ctrlkit create api adds one", p.Dir)
	}
	first := own[0]
	for _, name := range []struct {
		flag  string
		given *string
		is    string
	}{
		{"project-name", &f.name, p.Name}, {"domain", &f.domain, p.Domain}, {"repo", &f.repo, p.Repo},
		{"group", &f.api.Group, first.Group}, {"version", &f.api.Version, first.Version}, {"kind", &f.api.Kind, first.Kind}, {"plural", &f.api.Plural, fallback(first.Plural, scaffold.Plural(strings.ToLower(first.Kind)))},
	} {
		if *name.given != "" && *name.given != name.is {
			return &exitError{exitUsage, fmt.Errorf("--%s %s: %s is a project already, in which it is %s. ctrlkit create api adds a kind", name.flag, *name.given, p.Dir, name.is)}
		}
		*name.given = name.is
	}
	return nil
}

// plan plans the project. For one that is there, the children are those that it was written with,
// unless a flag says otherwise: with others, more files would differ.
func (f *initFlags) plan(project *scaffold.Project, require scaffold.Requirements) (best *scaffold.Plan, err error) {
	choices := []scaffold.Children{f.api.Children}
	if f.api.Children == "" {
		choices = scaffold.AllChildren
	}
	for _, f.api.Children = range choices {
		plan, err := scaffold.Init(project, f.api, require)
		if err != nil {
			return nil, err
		}
		if best == nil || len(plan.Conflicts()) < len(best.Conflicts()) {
			best = plan
		}
	}
	return best, nil
}

var notLabel = regexp.MustCompile(`[^a-z0-9]+`)

// label makes a DNS label of the name of a directory.
func label(name string) string {
	return fallback(strings.Trim(notLabel.ReplaceAllString(strings.ToLower(name), "-"), "-"), "operator")
}

func fallback(value, other string) string {
	if value != "" {
		return value
	}
	return other
}
