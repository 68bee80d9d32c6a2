// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
)

// A token need not be an argument, which every user of the machine can read: each command that
// takes one also takes a file and an environment variable, by the same rule.
func TestTokens(t *testing.T) {
	sent := ""
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { sent = r.Header.Get("Authorization") }))
	defer server.Close()
	file, empty := filepath.Join(t.TempDir(), "token"), filepath.Join(t.TempDir(), "empty")
	must(t, os.WriteFile(file, []byte("of-file\n"), 0o600))
	must(t, os.WriteFile(empty, []byte("\n"), 0o600))
	for _, test := range []struct {
		variable, arguments, kubeconfig string
		want, problem                   string
	}{
		{want: ""},
		{kubeconfig: "of-kubeconfig", want: "Bearer of-kubeconfig"},
		{variable: "of-variable", kubeconfig: "of-kubeconfig", want: "Bearer of-variable"},
		{variable: "of-variable", arguments: "--token-file=" + file, want: "Bearer of-file"},
		{variable: "of-variable", arguments: "--token=of-argument", want: "Bearer of-argument"},
		{arguments: "--token-file=" + empty, kubeconfig: "of-kubeconfig", problem: "--token-file: " + empty + " has no token"},
		{arguments: "--token-file=" + file + ".not", kubeconfig: "of-kubeconfig", problem: "--token-file: open "},
	} {
		t.Setenv("CTRLKIT_TOKEN", test.variable)
		flags, cmd := &operatorFlags{}, &cobra.Command{}
		flags.register(cmd)
		must(t, cmd.ParseFlags(append(strings.Fields(test.arguments), "--insecure", "--endpoint="+server.URL)))
		sent = ""
		_, err := flags.get(t.Context(), &rest.Config{BearerToken: test.kubeconfig}, "/", nil, time.Minute)
		if sent != test.want || (err == nil) != (test.problem == "") || err != nil && !strings.Contains(err.Error(), test.problem) {
			t.Errorf("%+v: sent %q, %v", test, sent, err)
		}
		sent = ""
		if test.problem == "" {
			_, _ = (&viewFlags{operatorFlags: *flags}).operatorPage(context.Background(), &rest.Config{BearerToken: test.kubeconfig}, nil)
			if sent != test.want {
				t.Errorf("%+v: view sent %q", test, sent)
			}
		}
	}
	walk(New(), func(cmd *cobra.Command) {
		if (cmd.Flags().Lookup("token") == nil) != (cmd.Flags().Lookup("token-file") == nil) {
			t.Errorf("%s has one of --token and --token-file", cmd.Name())
		}
	})
}
