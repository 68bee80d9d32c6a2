// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package command

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// TestDocumentCommandsEndOnSIGTERM interrupts commands that wait for a document which never ends,
// and do not check their context.
func TestDocumentCommandsEndOnSIGTERM(t *testing.T) {
	rings.Test(t, "runs the command")
	for _, name := range []string{"check", "fmt", "generate"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			document := filepath.Join(t.TempDir(), "endless.ctrlkit")
			must(t, syscall.Mkfifo(document, 0o600))
			program, err := os.Executable()
			must(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			cmd := exec.CommandContext(ctx, program, name, document)
			cmd.Args[0] = "ctrlkit"
			must(t, cmd.Start())
			writer, err := os.OpenFile(document, os.O_WRONLY, 0) // waits until the command reads
			must(t, err)
			defer writer.Close()
			must(t, cmd.Process.Signal(syscall.SIGTERM))
			var exit *exec.ExitError
			if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != exitInterrupted {
				t.Errorf("%s ended with %v, want exit code %d", name, err, exitInterrupted)
			}
		})
	}
}
