// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"encoding/base64"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ctrlkit/ctrlkit/internal/cluster/secrets/secretstest"
	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
)

// A value of a user's Secret is found in every form. What a right operator says of it is no value:
// a part of a document, what is too short or public, and what the user has written elsewhere.
func TestSecretsAreFoundInEveryForm(t *testing.T) {
	for _, canary := range secretstest.Canaries {
		l := newLedger(Options{})
		data := map[string]any{}
		for key, value := range map[string]string{
			"password": canary, "username": "app-user", "pin": "1234", "config": "host: db.example.com:5432\npassword: hunter-of-the-user\n", "same": "written-elsewhere",
		} {
			data[key] = base64.StdEncoding.EncodeToString([]byte(value))
		}
		l.addSecrets(map[string]any{"data": data})
		l.noteUsersWords(&change{Change: apiserver.Change{
			Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, New: map[string]any{"data": map[string]any{"x": "written-elsewhere"}},
		}})
		for name, form := range secretstest.Forms {
			if text := `{"message":"used ` + form(canary) + `"}`; !l.revealsSecret(text) {
				t.Errorf("%s: %q is not found in %q", name, canary, text)
			}
		}
		for _, text := range []string{
			"", `{"message":"connected to db.example.com:5432 as app-user, pin 1234"}`, "is written-elsewhere", "default/credentials has the key password", "aGVsbG8gd29ybGQ= is \\u0041",
		} {
			if l.revealsSecret(text) {
				t.Errorf("a right operator may not say %q", text)
			}
		}
	}
}
