// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ctrlkit/ctrlkit/controlplane"
)

func newControlPlaneBuildCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "build",
		Short: "Compile the programs of the control plane",
		Long: `Compile the programs of the control plane, unless they are up to date, and print
their directory. Progress goes to standard error.

The first build takes minutes. Its result stays in your cache directory until
the source of the programs or your version of Go changes.`,
		Example: `  ctrlkit controlplane build
  ls "$(ctrlkit controlplane build)"`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			assets, err := buildAssets(cmd)
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), assets.Dir)
			return nil
		},
	}
}

// assetsFormats are the formats in which env prints the directory of the programs.
var assetsFormats = map[string]string{
	"sh":         "export %s=%s\n",
	"fish":       "set -gx %s %s\n",
	"powershell": "$Env:%s = %s\n",
}

func newControlPlaneEnvCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "env",
		Short: "Print the setting with which envtest finds the programs",
		Long: `Print the setting of KUBEBUILDER_ASSETS with which controller-runtime's envtest
finds the programs of the control plane. They are built first if necessary;
progress goes to standard error.`,
		Example: `  source <(ctrlkit controlplane env)
  ctrlkit controlplane env --format fish | source
  KUBEBUILDER_ASSETS=$(ctrlkit controlplane env --format path) go test ./...`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			pattern, known := assetsFormats[format]
			if !known && format != "path" {
				return &exitError{code: 2, err: fmt.Errorf("unknown format %q: want sh, fish, powershell or path", format)}
			}
			assets, err := buildAssets(cmd)
			if err != nil {
				return err
			}
			if format == "path" {
				fmt.Fprintln(cmd.OutOrStdout(), assets.Dir)
				return nil
			}
			fmt.Fprintf(cmd.OutOrStdout(), pattern, controlplane.AssetsVariable, quoteForShell(format, assets.Dir))
			return nil
		},
	}
	cmd.Flags().StringVarP(&format, "format", "f", "sh", "what to print: a setting for sh, fish or powershell, or only the path")
	return cmd
}

// plain matches text that needs no quotes in a Unix shell.
var plain = regexp.MustCompile(`^[\w@%+=:,./-]+$`)

func buildAssets(cmd *cobra.Command) (controlplane.Assets, error) {
	return controlplane.Build(cmd.Context(), controlplane.BuildOptions{Progress: unchanged(cmd.ErrOrStderr())})
}

// quoteForShell quotes text if necessary, so that a shell takes it literally.
func quoteForShell(shell, text string) string {
	if shell != "powershell" && plain.MatchString(text) {
		return text
	}
	switch shell {
	case "powershell":
		return "'" + strings.ReplaceAll(text, "'", "''") + "'"
	case "fish":
		return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(text) + "'"
	default:
		return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
	}
}
