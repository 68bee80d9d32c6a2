// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ctrlkit/ctrlkit/internal/cluster/printable"
)

const pluginPrefix = "kubectl-"

// Main runs the command line of this process and returns its exit code.
func Main() int {
	ctx, stop := interruptible(context.Background())
	defer stop()

	cmd := New()
	args := os.Args[1:]
	switch name := strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe"); {
	case strings.HasPrefix(name, "kubectl_complete-"):
		// kubectl runs a program of this name to complete the arguments of a plugin.
		args = append([]string{cobra.ShellCompRequestCmd}, args...)
	case strings.HasPrefix(name, pluginPrefix):
		nameAsPlugin(cmd, name)
	}
	cmd.SetArgs(args)
	cmd.SetIn(os.Stdin)
	cmd.SetOut(printable.NewWriter(os.Stdout))
	cmd.SetErr(printable.NewWriter(os.Stderr))

	used, err := cmd.ExecuteContextC(ctx)
	report(printable.NewWriter(os.Stderr), used, err)
	return exitCode(err)
}

// report prints err and, for wrong usage, where to find help. It prints nothing for an
// interruption.
func report(w io.Writer, used *cobra.Command, err error) {
	if err == nil || err.Error() == "" || errors.Is(err, context.Canceled) || errors.Is(err, errInterrupted) {
		return
	}
	fmt.Fprintf(w, "%s: %v\n", used.Root().DisplayName(), err)
	if text := err.Error(); strings.Contains(text, noGo) && !strings.Contains(text, installGo) {
		fmt.Fprintln(w, "Install Go from "+installGo+": this command compiles or reads Go with it.")
	}
	if mistake := (*usageMistake)(nil); exitCode(err) == exitUsage || errors.As(err, &mistake) {
		fmt.Fprintf(w, "Run '%s --help' for usage.\n", used.CommandPath())
	}
}

const (
	// noGo is in the errors of all that start the go command, also of go/packages, which wraps none.
	noGo      = `exec: "go": executable file not found`
	installGo = "https://go.dev/dl"
)

// nameAsPlugin makes usage texts say "kubectl ctrlkit" if the program is called kubectl-ctrlkit.
func nameAsPlugin(root *cobra.Command, program string) {
	plain := root.Name()
	plugin := "kubectl " + strings.TrimPrefix(program, pluginPrefix)
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: plugin}
	walk(root, func(cmd *cobra.Command) {
		lines := strings.Split(cmd.Example, "\n")
		for i, line := range lines {
			indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
			if arguments, ok := strings.CutPrefix(line, indent+plain+" "); ok {
				lines[i] = indent + plugin + " " + arguments
			}
		}
		cmd.Example = strings.Join(lines, "\n")
	})
}
