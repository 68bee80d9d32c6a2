// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ctrlkit/ctrlkit/controlplane"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// runControlPlaneCommand runs `ctrlkit controlplane` with args and returns what it printed.
func runControlPlaneCommand(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var output strings.Builder
	cmd := newControlPlaneCommand()
	cmd.SetArgs(args)
	cmd.SetOut(&output)
	cmd.SetErr(os.Stderr)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	err := cmd.ExecuteContext(t.Context())
	return output.String(), err
}

func TestControlPlaneEnvIsUnderstoodByAShell(t *testing.T) {
	rings.Test(t, "builds a control plane")
	script, err := runControlPlaneCommand(t, "env")
	must(t, err)
	shell := exec.CommandContext(t.Context(), "sh", "-c", script+`exec "$KUBEBUILDER_ASSETS/kubectl" version --client`)
	output, err := shell.CombinedOutput()
	if err != nil || !strings.Contains(string(output), "Client Version: v1.") {
		t.Errorf("a shell that sourced it: %v\n%s", err, output)
	}
}

func TestControlPlaneBuildAndEnvAgree(t *testing.T) {
	rings.Test(t, "builds a control plane")
	built, err := runControlPlaneCommand(t, "build")
	must(t, err)
	path, err := runControlPlaneCommand(t, "env", "--format", "path")
	must(t, err)
	if built != path {
		t.Errorf("build prints %q and env %q", built, path)
	}
}

func TestControlPlaneWrongUsage(t *testing.T) {
	for _, test := range []struct {
		args string
		want string // a part of the message
	}{
		{"env --format nushell", `unknown format "nushell"`},
		{"start --components kubelet", `unknown component "kubelet"`},
		{"start --nodes 0", "--nodes 0"},
	} {
		_, err := runControlPlaneCommand(t, strings.Fields(test.args)...)
		var exit *exitError
		if !errors.As(err, &exit) || exit.code != 2 || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: err = %v, want %q with exit code 2", test.args, err, test.want)
		}
	}
}

func TestQuoteForShell(t *testing.T) {
	for _, test := range []struct{ shell, text, want string }{
		{"sh", "/home/me/.cache", "/home/me/.cache"},
		{"sh", "/home/it's me", `'/home/it'\''s me'`},
		{"fish", `/a\b'c`, `'/a\\b\'c'`},
		{"powershell", `C:\it's`, `'C:\it''s'`},
	} {
		if got := quoteForShell(test.shell, test.text); got != test.want {
			t.Errorf("quoteForShell(%s, %s) = %s, want %s", test.shell, test.text, got, test.want)
		}
	}
}

func TestControlPlaneStartUntilItIsInterrupted(t *testing.T) {
	rings.Test(t, "builds a control plane")
	assets, err := controlplane.Build(t.Context(), controlplane.BuildOptions{Progress: os.Stderr})
	must(t, err)
	kubeconfig := filepath.Join(t.TempDir(), "it's a config")
	ctx, interrupt := context.WithCancel(t.Context())
	output, input := io.Pipe()
	cmd := newControlPlaneCommand()
	cmd.SetArgs([]string{"start", "--components", "none", "--kubeconfig", kubeconfig})
	cmd.SetOut(input)
	cmd.SetErr(os.Stderr)
	ended := make(chan error, 1)
	go func() {
		err := cmd.ExecuteContext(ctx)
		input.CloseWithError(io.EOF)
		ended <- err
	}()

	said := readUntil(t, output, "Press Ctrl-C")
	go io.Copy(io.Discard, output) //nolint:errcheck // the remaining output is not read
	setting := regexp.MustCompile(`(?m)^  (export KUBECONFIG=.*)$`).FindString(said)
	shell := exec.CommandContext(t.Context(), "sh", "-c", setting+"\nexec "+assets.Program("kubectl")+" get namespace default -o name")
	if answer, err := shell.CombinedOutput(); err != nil || string(answer) != "namespace/default\n" {
		t.Errorf("kubectl: %v\n%s", err, answer)
	}
	interrupt()
	if err := <-ended; err != nil {
		t.Errorf("after the interruption: %v", err)
	}
	if _, err := os.Stat(kubeconfig); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the kubeconfig file: %v, want that it does not exist", err)
	}
}

// readUntil reads lines up to one that begins with prefix.
func readUntil(t *testing.T, from io.Reader, prefix string) string {
	t.Helper()
	var all strings.Builder
	scanner := bufio.NewScanner(from)
	for scanner.Scan() {
		all.WriteString(scanner.Text() + "\n")
		if strings.HasPrefix(scanner.Text(), prefix) {
			return all.String()
		}
	}
	t.Fatalf("the command ended without saying %q: %v\n%s", prefix, scanner.Err(), &all)
	return ""
}
