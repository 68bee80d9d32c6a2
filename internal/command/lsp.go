// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"github.com/spf13/cobra"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/check"
	"github.com/ctrlkit/ctrlkit/internal/language/lsp"
)

func newLSPCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lsp",
		Short: "Serve an editor: mistakes as one types, completion, hover, definitions, renaming",
		Long: `Lsp is the language server of documents. An editor starts it, and talks to it by the Language Server Protocol on
standard input and output.

It reports mistakes with their remedies as one types, formats, completes, describes what is under the cursor, finds
definitions and references in documents and in Go, renames, and writes the Go method for an action. The command
ctrlkit.drawing of the server returns the picture of a document.

The section "In the editor" of docs/language.md says how Neovim, Helix and VS Code start it.

Exit codes: 0 the editor has shut the server down, 1 it ended otherwise, 2 wrong usage.`,
		Example: `  ctrlkit lsp   as the command of a language server, in the configuration of an editor`,
		Args:    arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			defer endOnInterrupt(cmd.Context())()
			return lsp.Serve(cmd.Context(), cmd.InOrStdin(), unchanged(cmd.OutOrStdout()),
				lsp.Options{Loader: check.GoLoader{}, Draw: new(graphOptions).draw})
		},
	}
	// Some clients always say which transport they mean. There is only one.
	cmd.Flags().Bool("stdio", true, "use standard input and output")
	_ = cmd.Flags().MarkHidden("stdio")
	return cmd
}
