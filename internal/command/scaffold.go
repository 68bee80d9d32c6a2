// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
	"golang.org/x/term"

	"github.com/ctrlkit/ctrlkit/internal/scaffold"
)

// scaffoldFlags are the flags that "ctrlkit init" and "ctrlkit create api" share.
type scaffoldFlags struct {
	api     scaffold.API
	dryRun  bool
	force   bool
	yes     bool
	replace string

	instead  string // what to do if files are in the way
	replaced string // the checkout that takes the place of a version without a flag
}

func (f *scaffoldFlags) declare(cmd *cobra.Command, group, version, kind string) {
	withDefault := func(text, value string) string {
		if value == "" {
			return text
		}
		return text + " (default " + value + ")"
	}
	set := cmd.Flags()
	set.StringVar(&f.api.Group, "group", "", withDefault("the API `GROUP`, without the domain", group))
	set.StringVar(&f.api.Version, "version", "", withDefault("the `VERSION` of the API", version))
	set.StringVar(&f.api.Kind, "kind", "", withDefault("the `KIND`, in CamelCase", kind))
	set.StringVar(&f.api.Plural, "plural", "", "the `PLURAL` of the kind, in lower case (default by the rules of English)")
	set.StringVar((*string)(&f.api.Children), "children", "", "what each object keeps: `deployment` (with a Service), configmap, external (a resource outside the cluster) or none (default deployment)")
	set.BoolVar(&f.api.Document, "document", false, "write a document of the language, too, which reads the Pods of the Deployment, or those that use the object")
	set.BoolVar(&f.dryRun, "dry-run", false, "show the changes as a diff, and write nothing")
	set.BoolVar(&f.force, "force", false, "overwrite files that exist with another content")
	set.BoolVarP(&f.yes, "yes", "y", false, "ask nothing: use the defaults")
	set.StringVar(&f.replace, "ctrlkit-replace", "", "use the ctrlkit in this `DIR` (default the released version of this command, or else its checkout)")
	_ = cmd.MarkFlagDirname("ctrlkit-replace")
	_ = cmd.RegisterFlagCompletionFunc("children", cobra.FixedCompletions([]string{"deployment", "configmap", "external", "none"}, cobra.ShellCompDirectiveNoFileComp))
}

// asUsage makes wrong usage of mistakes in names.
func asUsage(err error) error {
	var name *scaffold.NameError
	if errors.As(err, &name) {
		return &exitError{exitUsage, err}
	}
	return err
}

// An asker completes what no flag gives: in a terminal by questions, else by defaults.
type asker struct {
	interactive bool
	ctx         context.Context // ends a question
	in          *bufio.Reader
	out         io.Writer
	changed     func(flag string) bool
	err         error
}

func (f *scaffoldFlags) asker(cmd *cobra.Command) *asker {
	in, ok := cmd.InOrStdin().(*os.File)
	return &asker{
		interactive: !f.yes && ok && term.IsTerminal(int(in.Fd())) && isTerminal(cmd.OutOrStdout()),
		ctx:         cmd.Context(), in: bufio.NewReader(cmd.InOrStdin()), out: cmd.OutOrStdout(), changed: cmd.Flags().Changed,
	}
}

// question sets a value that its flag has not set. In a terminal it asks until check, which may be
// nil, accepts the answer.
func (a *asker) question(value *string, flag, text, byDefault string, check func() error) {
	if a.changed(flag) || a.err != nil {
		return
	}
	*value = byDefault
	if !a.interactive {
		return
	}
	if byDefault != "" {
		text += " [" + byDefault + "]"
	}
	for a.err == nil {
		fmt.Fprintf(a.out, "%s (--%s): ", text, flag)
		answer, err := a.line()
		if *value = fallback(strings.TrimSpace(answer), byDefault); err != nil {
			if a.err = fmt.Errorf("reading the answer for --%s: %w", flag, err); errors.Is(err, io.EOF) {
				a.err = nil // the rest is by default
			}
			return
		}
		if check == nil {
			return
		}
		if err = check(); err == nil {
			return
		}
		fmt.Fprintf(a.out, "  %v\n", err)
	}
}

// questions asks for what names an API besides its kind. version is the default for the group.
func (f *scaffoldFlags) questions(a *asker, domain, group string, version func() string) {
	a.question(&f.api.Group, "group", "Group, without the domain", group, func() error { return f.api.CheckGroup(domain) })
	a.question(&f.api.Version, "version", "Version", version(), func() error { return f.api.CheckVersion() })
	a.question((*string)(&f.api.Children), "children", "Children of each object: deployment, configmap, external or none", string(scaffold.ChildrenDeployment), func() error { return f.api.CheckChildren() })
}

// line reads a line, until the context ends.
func (a *asker) line() (string, error) {
	type read struct {
		text string
		err  error
	}
	done := make(chan read, 1)
	go func() { // a terminal can't be read with a context; after an interrupt the process ends
		text, err := a.in.ReadString('\n')
		done <- read{text, err}
	}()
	select {
	case r := <-done:
		return r.text, r.err
	case <-a.ctx.Done():
		fmt.Fprintln(a.out)
		return "", context.Cause(a.ctx)
	}
}

// requirements returns which ctrlkit the project shall require: that of this command.
func (f *scaffoldFlags) requirements() (scaffold.Requirements, error) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return scaffold.Requirements{}, errors.New("this program does not know its version: it has no build information")
	}
	r, err := requirementsFrom(info, f.replace, checkout())
	if err != nil {
		return r, err
	}
	if r.Replace != "" && f.replace == "" {
		f.replaced = r.Replace
	}
	return r, nil
}

// requirementsFrom returns the version in the build information of this program. If it was
// neither built from a downloaded module nor is of the archive of a release, a directory takes
// the place of the version.
func requirementsFrom(info *debug.BuildInfo, replace, checkout string) (scaffold.Requirements, error) {
	r := scaffold.Requirements{Ctrlkit: info.Main.Version}
	released := info.Main.Sum != "" || checkout == "" && isTagged(info.Main.Version)
	if released && info.Main.Replace == nil && replace == "" {
		return r, nil
	}
	r.Ctrlkit, r.Replace = "v0.0.0", checkout
	if replace != "" {
		abs, err := filepath.Abs(replace)
		if err != nil {
			return r, err
		}
		r.Replace = abs
	}
	if r.Replace == "" {
		return r, &exitError{exitUsage, errors.New("this ctrlkit is no released version, and its source is not where it was compiled: name a checkout with --ctrlkit-replace")}
	}
	if !isCheckout(r.Replace) {
		return r, &exitError{exitUsage, fmt.Errorf("--ctrlkit-replace %s: it is no checkout of ctrlkit", replace)}
	}
	return r, nil
}

// isTagged reports whether a version is that of a tag, which the go command finds in a checkout
// without changes.
func isTagged(version string) bool {
	return semver.IsValid(version) && semver.Build(version) == "" && !module.IsPseudoVersion(version) && version != "v0.0.0"
}

// checkout returns the directory that this program was compiled from, empty if it is not there.
func checkout() string {
	_, source, _, ok := runtime.Caller(0)
	if !ok || !filepath.IsAbs(source) { // built with -trimpath
		return ""
	}
	if root := filepath.Dir(filepath.Dir(filepath.Dir(source))); isCheckout(root) {
		return root
	}
	return ""
}

func isCheckout(dir string) bool {
	path, err := scaffold.ModulePath(dir)
	return err == nil && path == "github.com/ctrlkit/ctrlkit"
}

// documentDir returns the directory of the document of the kind, empty if it has none.
func (f *scaffoldFlags) documentDir(p *scaffold.Project) string {
	if !f.api.Document {
		return ""
	}
	return filepath.Join(p.Dir, filepath.FromSlash(p.ControllerDir(f.api)))
}

// carryOut shows or writes a plan, and does what follows. It reports whether anything was written.
func (f *scaffoldFlags) carryOut(cmd *cobra.Command, plan *scaffold.Plan, work afterwards) (bool, error) {
	out := cmd.ErrOrStderr()
	if plan.Upgrade != "" {
		defer fmt.Fprintln(out, plan.Upgrade) // after what go mod tidy prints
	}
	if f.dryRun {
		for _, note := range plan.Notes {
			fmt.Fprintln(out, note)
		}
		if len(plan.Changes) > 0 {
			defer fmt.Fprintf(out, "Nothing was written. Without --dry-run, it would then run %s.\n", work)
		}
		return false, plan.Diff(cmd.OutOrStdout(), diffColors(cmd.OutOrStdout()))
	}
	if changed := plan.Conflicts(); len(changed) > 0 && !f.force {
		return false, fmt.Errorf("these files exist with another content, and nothing was written:\n  %s\nLook at the differences with --dry-run. Then move the files away, or overwrite them with --force%s", strings.Join(changed, "\n  "), f.instead)
	}
	if len(plan.Changes) == 0 {
		fmt.Fprintln(out, "Nothing to do: all of it is there.")
		return false, nil
	}
	if err := plan.Write(); err != nil {
		return false, fmt.Errorf("writing the project: %w", err)
	}
	fmt.Fprint(out, plan.Summary())
	if f.replaced != "" && plan.Has("go.mod") {
		fmt.Fprintf(out, "This ctrlkit is no released version: go.mod replaces it by its checkout, %s\n", f.replaced)
	}
	if err := work.do(cmd.Context(), plan.Dir, out); err != nil {
		return true, err
	}
	for _, note := range plan.Notes {
		fmt.Fprintln(out, "Left to you: "+note)
	}
	return true, nil
}

func diffColors(w io.Writer) bool {
	return isTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
